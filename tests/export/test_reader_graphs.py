"""Graphs of models with a head that finds answers, fast, unpadded and plain: against torch, and what becomes int8 of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from family_teachers import LAYERS, POSITIONS, reader_of
from plain_teachers import LAYERS as PLAIN_LAYERS
from plain_teachers import plain_reader
from wrong_graphs import wrong_head

from compress.errors import CheckFailed, CompressError
from compress.evaluate import predict_onnx
from compress.export import export_onnx
from compress.export.fast import build_fast
from compress.export.fast.heads import GRAPH_HEADS
from compress.export.forms import FORMS
from compress.export.tracing import Traced, describe, example
from compress.graphs import get_metadata, head_matmuls, matmuls, output_matmuls, write_model
from compress.models.fake_quant import FakeQuant, fake_quantized
from compress.models.families import FAMILIES
from compress.models.features import logits_of
from compress.models.predict import predict_logits
from compress.quantize import quantize_onnx
from compress.quantize.checking import CLASSIFIER
from compress.quantize.int8_files import _check_same
from compress.quantize.noise import signal_to_noise
from compress.quantize.qat_params import Trained, quant_spec_of
from compress.quantize.ranges import Range, calibrate
from compress.quantize.simulation import simulate
from compress.sessions import open_session, real_rows, run_logits
from compress.spec.quantization import Quantize
from compress.tasks import Encoded

FAST = [name for name, family in FAMILIES.items() if family.fast and not family.layerless]
TASK: dict[str, Any] = {"opset": 20, "task_name": "toy", "labels": ("start", "end"), "kind": "span"}
OUTPUTS = ["start_logits", "end_logits"]
SHAPES = [(1, 1), (1, 2), (2, 7), (3, 19), (5, POSITIONS)]
LENGTHS = (14, 9, 3, 1, 14, 7)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """family -> folder of a tiny checkpoint with a head that finds answers."""
    made: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp(f"reader-{family}")
            model = plain_reader(family) if family in FORMS else reader_of(family)
            model.save_pretrained(made[family])
        return made[family]

    return make


@pytest.fixture(scope="session")
def graph(checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """(family, form, opset) -> model.onnx."""
    made: dict[tuple[str, str, int], Path] = {}

    def make(family: str, form: str = "fast", opset: int = 20) -> Path:
        place = family, form, opset
        if place not in made:
            folder = tmp_path_factory.mktemp("graph")
            export_onnx(checkpoint(family), folder, graph=form, **{**TASK, "opset": opset})
            made[place] = folder / "model.onnx"
        return made[place]

    return make


def logits(path: Path, feed: dict[str, np.ndarray]) -> np.ndarray:
    """By ONNX Runtime alone, [batch, length, 2]."""
    session = open_session(path, threads=1)
    found = session.run(OUTPUTS, {value.name: feed[value.name] for value in session.get_inputs()})
    return np.stack([np.asarray(side) for side in found], axis=-1)


def traced_of(family: str) -> Traced:
    return describe(reader_of(family), "span")


def arrays(inputs: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in inputs.items()}


def texts() -> dict[str, np.ndarray]:
    mask = (np.arange(14) < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids = np.random.default_rng(0).integers(7, 80, mask.shape)
    types = (np.arange(14) > 4) * mask
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": types}


def shapes_of(path: Path) -> dict[str, list[Any]]:
    outputs = onnx.load(path, load_external_data=False).graph.output
    return {
        value.name: [axis.dim_value or axis.dim_param for axis in value.type.tensor_type.shape.dim] for value in outputs
    }


@pytest.mark.parametrize("opset", [20, 23])
@pytest.mark.parametrize("family", FAST)
def test_every_family_agrees_with_torch(family: str, opset: int, graph: Callable[..., Path]) -> None:
    traced = traced_of(family)
    for name in ("model.onnx", "model_unpadded.onnx"):
        path = graph(family, "fast", opset).with_name(name)
        for batch, length in SHAPES:
            inputs = example(traced, batch, length)
            with torch.inference_mode():
                output = traced.model(**inputs)
            expected = torch.stack([output.start_logits, output.end_logits], -1).numpy()
            found, mask = logits(path, arrays(inputs)), inputs["attention_mask"].numpy()
            assert found.shape == (batch, length, 2)
            # fp32 sums in another order, logits of order 1
            np.testing.assert_allclose(real_rows(found, mask), real_rows(expected, mask), rtol=0, atol=2e-6)


SOME, OTHERS = ("bert", "modernbert"), ("albert", "distilbert", "roberta", "electra", "mpnet", "ernie")


@pytest.mark.parametrize("family", [*SOME, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_the_plain_graph_agrees_with_torch(family: str, checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    info = export_onnx(checkpoint(family), tmp_path, graph="plain", **TASK)
    assert len(info["parity_max_abs_error"]) == 4
    assert max(info["parity_max_abs_error"].values()) < 2e-6  # as above
    assert {name: len(shape) for name, shape in shapes_of(tmp_path / "model.onnx").items()} == dict.fromkeys(OUTPUTS, 2)
    feed = texts()
    feed["token_type_ids"] = feed["token_type_ids"] if family != "ernie" else np.zeros_like(feed["token_type_ids"])
    assert logits(tmp_path / "model.onnx", feed).shape == (6, 14, 2)


@pytest.mark.parametrize("family", FORMS)
def test_a_form_computes_what_the_model_does(family: str) -> None:
    model = plain_reader(family)
    form, traced = FORMS[family](model).eval(), describe(model, "span")
    for batch, length in SHAPES:
        inputs = example(traced, batch, length)
        real = inputs["attention_mask"].bool()
        with torch.no_grad():
            found, expected = form(**inputs), logits_of(model, model(**inputs), inputs["attention_mask"])
        assert found.shape == expected.shape == (batch, length, 2)
        torch.testing.assert_close(found[real], expected[real], rtol=0, atol=2e-6)  # fp32, another order


@pytest.mark.parametrize("family", FORMS)
def test_a_form_s_graph_is_exported_and_becomes_int8(
    family: str, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    info = export_onnx(checkpoint(family), tmp_path, graph="plain", **TASK)
    assert max(info["parity_max_abs_error"].values()) < 2e-6
    assert list(shapes_of(tmp_path / "model.onnx")) == OUTPUTS
    int8 = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    assert int8["int8_matmuls"] == {"deberta-v2": 6, "xlnet": 7}[family] * PLAIN_LAYERS
    assert int8["fp32_matmuls"] == 1
    assert CLASSIFIER in int8["stayed_fp32"].values()


@pytest.mark.parametrize("form", ["model.onnx", "model_unpadded.onnx"])
def test_the_graph_names_its_outputs_as_optimum_and_transformers_do(form: str, graph: Callable[..., Path]) -> None:
    path = graph("bert").with_name(form)
    assert shapes_of(path) == {name: ["batch", "length"] for name in OUTPUTS}
    metadata = get_metadata(onnx.load(path, load_external_data=False))
    assert (metadata["kind"], metadata["labels"]) == ("span", '["start", "end"]')


def test_the_unpadded_form_has_a_row_for_each_token_up_to_the_last_layer(
    graph: Callable[..., Path], tmp_path: Path
) -> None:
    model = onnx.load(graph("bert").with_name("model_unpadded.onnx"))
    (last,) = [node for node in model.graph.node if node.name == "qa_outputs/MatMul"]
    model.graph.output.append(onnx.helper.make_tensor_value_info(last.output[0], 1, None))
    write_model(model, tmp_path / "m.onnx")
    session = open_session(tmp_path / "m.onnx")
    feed = {value.name: texts()[value.name] for value in session.get_inputs()}
    (rows,) = session.run([last.output[0]], feed)
    assert np.asarray(rows).shape == (1, sum(LENGTHS), 2)


def test_no_weight_of_the_last_layer_is_absorbed_and_the_pooler_is_gone(graph: Callable[..., Path]) -> None:
    model = onnx.load(graph("bert"))
    found = matmuls(model.graph)
    assert not found.stacked
    assert len(found.fp32) == 6 * LAYERS + 1
    assert head_matmuls(model.graph) == output_matmuls(model.graph) == ("qa_outputs/MatMul",)
    assert not [node.name for node in model.graph.node if "pooler" in node.name]


@pytest.mark.parametrize("part", [f"layer {LAYERS}", "head"])
@pytest.mark.parametrize("form", ["model.onnx", "model_unpadded.onnx"])
def test_a_wrong_graph_is_not_kept_and_the_message_names_the_part(
    part: str, form: str, checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GRAPH_HEADS, "span", wrong_head(GRAPH_HEADS["span"], part, unpadded="unpadded" in form))
    with pytest.raises(
        CheckFailed, match=rf"{form}: logits differ from torch's.*; the first part that differs is {part}$"
    ):
        export_onnx(checkpoint("bert"), tmp_path, graph="fast", **TASK)
    assert not list(tmp_path.glob("*.onnx"))


def test_a_graph_that_takes_the_start_for_the_end_is_not_kept(
    checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = GRAPH_HEADS["span"]

    def turned(*parts: Any) -> str:
        return parts[0].op("Gather", [head.logits(*parts), parts[0].integers(1, 0)], "turned", axis=2)

    monkeypatch.setitem(GRAPH_HEADS, "span", replace(head, logits=turned))
    with pytest.raises(CheckFailed, match="the first part that differs is head"):
        export_onnx(checkpoint("bert"), tmp_path, graph="fast", **TASK)


def test_a_checkpoint_without_the_head_or_with_another_is_refused(tmp_path: Path) -> None:
    reader_of("bert").base_model.save_pretrained(tmp_path / "encoder")
    with pytest.raises(CompressError, match=r"expected the weights qa_outputs\.bias, qa_outputs\.weight; found none"):
        export_onnx(tmp_path / "encoder", tmp_path, graph="fast", **TASK)
    reader_of("bert", num_labels=3).save_pretrained(tmp_path / "three")  # transformers makes it, and cannot run it
    with pytest.raises(CompressError, match="expected 2 outputs for the task, found 3"):
        export_onnx(tmp_path / "three", tmp_path, graph="fast", **TASK)


def test_what_stands_in_the_padding_is_not_compared(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """The unpadded form has some real token's logits there, torch the padding's own."""
    info = export_onnx(checkpoint("bert"), tmp_path, graph="fast", **TASK)
    assert max(info["unpadded_parity_max_abs_error"].values()) < 2e-6
    padded, unpadded = (logits(tmp_path / f"model{form}.onnx", texts()) for form in ("", "_unpadded"))
    hidden = texts()["attention_mask"] == 0
    assert np.abs(padded[hidden] - unpadded[hidden]).max() > 0.1
    np.testing.assert_allclose(padded[~hidden], unpadded[~hidden], rtol=0, atol=2e-6)


@pytest.mark.parametrize("int8_format", ["dynamic", "static", "qdq"])
@pytest.mark.parametrize("family", ["bert", "distilbert", "albert", "mpnet"])
def test_all_matmuls_but_the_last_become_int8(
    family: str, int8_format: str, graph: Callable[..., Path], tmp_path: Path
) -> None:
    source, feed = graph(family, "fast", 23 if int8_format == "qdq" else 20), texts()
    info = quantize_onnx(source, tmp_path, Quantize(method="dynamic"), int8_format=int8_format, feeds=[feed])
    projection = family == "albert"
    assert (info["int8_matmuls"], info["weight_only_matmuls"]) == (6 * LAYERS + projection, 0)
    assert info["fp32_matmuls"] == 1
    assert {name: why for name, why in info["stayed_fp32"].items() if "MatMul" in name} == {
        "qa_outputs/MatMul": CLASSIFIER
    }
    name = "model_qdq.onnx" if int8_format == "qdq" else "model_quantized.onnx"
    assert list(shapes_of(tmp_path / name)) == OUTPUTS
    if int8_format == "dynamic":  # a run's own range is the same only where there is no padding to change it
        feed |= {"attention_mask": np.ones_like(feed["attention_mask"]), "input_ids": feed["input_ids"] + 5}
    mask = feed["attention_mask"]
    found, exact = (real_rows(logits(path, feed), mask) for path in (tmp_path / name, source))
    assert 0 < np.abs(found - exact).max() < 0.2 * np.abs(exact).max()
    if int8_format != "qdq":
        other = real_rows(logits(tmp_path / "model_quantized_unpadded.onnx", feed), mask)
        np.testing.assert_allclose(found, other, atol=2e-3)


@pytest.mark.parametrize("side", [0, 1])
def test_an_int8_form_that_differs_at_a_real_token_is_refused(
    side: int, graph: Callable[..., Path], tmp_path: Path
) -> None:
    quantize_onnx(graph("bert"), tmp_path, Quantize(method="dynamic"), int8_format="static", feeds=[texts()])
    padded, unpadded = (tmp_path / f"model_quantized{form}.onnx" for form in ("", "_unpadded"))
    _check_same(unpadded, padded, padded=True)
    model = onnx.load(padded)
    (bias,) = [tensor for tensor in model.graph.initializer if tensor.name == "qa_outputs.bias"]
    moved = onnx.numpy_helper.to_array(bias) + np.eye(2, dtype=np.float32)[side]
    bias.CopyFrom(onnx.numpy_helper.from_array(moved, bias.name))
    write_model(model, tmp_path / "other.onnx")
    with pytest.raises(CheckFailed, match="logits differ by"):
        _check_same(unpadded, tmp_path / "other.onnx", padded=True)


def test_an_int8_file_whose_logits_are_not_finite_is_refused(graph: Callable[..., Path], tmp_path: Path) -> None:
    model = onnx.load(graph("bert"))
    (bias,) = [tensor for tensor in model.graph.initializer if tensor.name == "qa_outputs.bias"]
    bias.CopyFrom(onnx.numpy_helper.from_array(np.array([0, np.nan], np.float32), bias.name))  # of the end alone
    write_model(model, tmp_path / "broken.onnx")
    with pytest.raises(CheckFailed, match="logits that are not finite"):
        quantize_onnx(tmp_path / "broken.onnx", tmp_path, Quantize(method="dynamic"))


def test_the_noise_of_int8_is_told_of_every_layer(graph: Callable[..., Path], tmp_path: Path) -> None:
    quantize_onnx(graph("bert"), tmp_path, Quantize(method="dynamic"), int8_format="static", feeds=[texts()])
    found = signal_to_noise(graph("bert"), tmp_path / "model_quantized.onnx", [texts()])
    assert "qa_outputs/MatMul" in found
    assert sum("output.dense" in name for name in found) == 2 * LAYERS
    assert all(value is not None and value > 5 for value in found.values())


def test_a_simulated_file_gives_start_and_end_side_by_side(graph: Callable[..., Path], tmp_path: Path) -> None:
    spec = Quantize(method="dynamic", reduce_range=True)  # 7 bits: nothing to saturate, whatever the CPU
    quantize_onnx(graph("bert"), tmp_path, spec, int8_format="static", feeds=[texts()])
    path, short = tmp_path / "model_quantized.onnx", {name: value[:2, :9] for name, value in texts().items()}
    feeds = [texts(), short]
    for feed, found in zip(feeds, simulate(path, feeds, saturating=False), strict=True):
        assert found.shape == (*feed["input_ids"].shape, 2)
        mine, expected = (real_rows(each, feed["attention_mask"]) for each in (found, logits(path, feed)))
        assert np.median(np.abs(mine - expected)) < 1e-4  # a level that is rounded the other way, rarely


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_model_in_training_for_int8_computes_what_its_file_does(
    family: str, graph: Callable[..., Path], tmp_path: Path
) -> None:
    spec = Quantize(method="qat", reduce_range=True)  # 7 bits, as above
    model, feed = reader_of(family), texts()
    written = build_fast(model, kind="span")
    assert written is not None
    form, _ = quant_spec_of(written, spec)
    assert not any(use.first for use in form.uses)
    assert "qa_outputs" not in {use.module for use in form.uses}
    sources = tuple(dict.fromkeys(use.source for use in form.uses if use.source is not None))
    spans = calibrate(written, sources, [feed], method="minmax", percentile=100)
    quant = FakeQuant(form, {name: (span.low, span.high) for name, span in spans.items()}, ranges="learned")
    with fake_quantized(model, quant), torch.no_grad():
        given = {name: torch.from_numpy(value) for name, value in feed.items()}
        found = logits_of(model, model(**given), given["attention_mask"]).numpy()
    ranges = {name: Range(*ends) for name, ends in quant.found().items()}
    info = quantize_onnx(graph(family), tmp_path, spec, trained=Trained(ranges, {}, {}))
    assert info["int8_matmuls"] == len(ranges)
    mask = feed["attention_mask"]
    int8 = real_rows(logits(tmp_path / "model_quantized.onnx", feed), mask)
    # Both round alike; a value that fp32 sums in another order lands half-way and is rounded the other way, rarely.
    assert np.median(np.abs(real_rows(found, mask) - int8)) < 1e-4


class _Windows(Encoded):
    """Of each row the logits of all its tokens, one after the other, start and end, and nothing of the padding."""

    def collected(self, parts: Any) -> np.ndarray:
        outputs = np.zeros((len(self), 2 * int(self.lengths.max())), np.float32)
        for rows, found in parts:
            for row, each in zip(rows, found, strict=True):
                outputs[row, : 2 * self.lengths[row]] = each[: self.lengths[row]].ravel()
        return outputs


def test_a_split_is_predicted_alike_by_torch_and_by_the_graph(graph: Callable[..., Path]) -> None:
    full = texts()
    rows = [(ids[:length], types[:length]) for ids, types, length in zip(
        full["input_ids"].astype(np.int32), full["token_type_ids"].astype(np.int8), LENGTHS, strict=True
    )]  # fmt: skip
    encoded = _Windows([ids for ids, _ in rows], [types for _, types in rows], np.zeros((len(rows), 2), np.int64))
    mine, theirs = predict_logits(reader_of("bert"), encoded, 0), predict_onnx(graph("bert"), encoded, 0, threads=1)
    assert mine.shape == theirs.shape == (6, 28)
    np.testing.assert_allclose(theirs, mine, rtol=0, atol=2e-6)  # as above
    assert np.abs(theirs[0, ::2] - theirs[0, 1::2]).max() > 0.1  # start and end are two things


def test_what_is_run_has_the_logits_side_by_side(graph: Callable[..., Path]) -> None:
    found = run_logits(open_session(graph("bert")), texts())
    assert np.array_equal(found, logits(graph("bert"), texts()))
