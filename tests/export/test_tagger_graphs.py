"""Graphs of token classification models, fast, unpadded and plain: against torch, and which parts become int8."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering
from family_teachers import LABELS, LAYERS, POSITIONS, tagger_of
from plain_teachers import LAYERS as PLAIN_LAYERS
from plain_teachers import plain_classifier
from wrong_graphs import wrong_head

from compress.errors import CheckFailed
from compress.export import export_onnx
from compress.export.fast import build_fast
from compress.export.fast.heads import GRAPH_HEADS
from compress.export.forms import FORMS
from compress.export.tracing import Traced, describe, example
from compress.graphs.matmuls import head_matmuls, matmuls, output_matmuls
from compress.graphs.model_files import write_model
from compress.models.fake_quant.classifier import FakeQuant, fake_quantized
from compress.models.families import FAMILIES
from compress.quantize import quantize_onnx
from compress.quantize.checking import CLASSIFIER
from compress.quantize.int8_files import _check_same
from compress.quantize.noise import signal_to_noise
from compress.quantize.qat_params import Trained, quant_spec_of
from compress.quantize.ranges import Range, calibrate
from compress.quantize.simulation import simulate
from compress.sessions.opening import open_session
from compress.sessions.outputs import real_rows
from compress.spec.quantization import Quantize

FAST = [name for name, family in FAMILIES.items() if family.fast_graph and not family.layerless]
TASK: dict[str, Any] = {"opset": 20, "task_name": "toy", "labels": LABELS, "kind": "tagging"}
SHAPES = [(1, 1), (1, 2), (2, 7), (3, 19), (5, POSITIONS)]
LENGTHS = (14, 9, 3, 1, 14, 7)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function: family -> folder of a tiny token classification checkpoint."""
    folders: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in folders:
            folders[family] = tmp_path_factory.mktemp(f"tagger-{family}")
            model = (
                tagger_of(family) if family in FAST or family == "modernbert" else plain_classifier(family, tags=True)
            )
            model.save_pretrained(folders[family])
        return folders[family]

    return make


@pytest.fixture(scope="session")
def graph(checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function: (family, form, opset) -> model.onnx."""
    paths: dict[tuple[str, str, int], Path] = {}

    def make(family: str, form: str = "fast", opset: int = 20) -> Path:
        place = family, form, opset
        if place not in paths:
            folder = tmp_path_factory.mktemp("graph")
            export_onnx(checkpoint(family), folder, graph=form, **{**TASK, "opset": opset})
            paths[place] = folder / "model.onnx"
        return paths[place]

    return make


def logits(path: Path, feed: dict[str, np.ndarray]) -> np.ndarray:
    session = open_session(path, threads=1)
    return np.asarray(session.run(["logits"], {value.name: feed[value.name] for value in session.get_inputs()})[0])


def traced_of(family: str) -> Traced:
    return describe(tagger_of(family), "tagging")


def arrays(inputs: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in inputs.items()}


def texts() -> dict[str, np.ndarray]:
    mask = (np.arange(14) < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids = np.random.default_rng(0).integers(7, 80, mask.shape)
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


@pytest.mark.parametrize(("family", "opset"), covering(FAST, [20, 23], ["mpnet"]))
def test_every_family_agrees_with_torch(family: str, opset: int, graph: Callable[..., Path]) -> None:
    traced = traced_of(family)
    for name in ("model.onnx", "model_unpadded.onnx"):
        path = graph(family, "fast", opset).with_name(name)
        for batch, length in SHAPES:
            inputs = example(traced, batch, length)
            with torch.inference_mode():
                expected = traced.model(**inputs).logits.numpy()
            actual, mask = logits(path, arrays(inputs)), inputs["attention_mask"].numpy()
            assert actual.shape == (batch, length, len(LABELS))
            # fp32 sums in another order, logits of order 1
            np.testing.assert_allclose(real_rows(actual, mask), real_rows(expected, mask), rtol=0, atol=2e-6)


PLAIN = ("albert", "bert", "modernbert", "distilbert", "roberta", "electra", "mpnet", "ernie")


@pytest.mark.slow  # torch's exporter
@pytest.mark.parametrize("family", PLAIN)
def test_the_plain_graph_agrees_with_torch(family: str, checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    info = export_onnx(checkpoint(family), tmp_path, graph="plain", **TASK)
    assert len(info["parity_max_abs_error"]) == 4
    assert max(info["parity_max_abs_error"].values()) < 2e-6  # as above
    (output,) = onnx.load(tmp_path / "model.onnx").graph.output
    assert [axis.dim_value or axis.dim_param for axis in output.type.tensor_type.shape.dim][2] == len(LABELS)


@pytest.mark.parametrize("family", FORMS)
def test_a_form_computes_what_the_model_does(family: str) -> None:
    model = plain_classifier(family, tags=True)
    form, traced = FORMS[family](model).eval(), describe(model, "tagging")
    for batch, length in SHAPES:
        inputs = example(traced, batch, length)
        real = inputs["attention_mask"].bool()
        with torch.no_grad():
            actual, expected = form(**inputs), model(**inputs).logits
        assert actual.shape == expected.shape
        torch.testing.assert_close(actual[real], expected[real], rtol=0, atol=2e-6)  # fp32 sums in another order


@pytest.mark.slow
@pytest.mark.parametrize("family", ["deberta-v2", "xlnet"])
def test_a_form_s_graph_is_exported_and_becomes_int8(
    family: str, checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    info = export_onnx(checkpoint(family), tmp_path, graph="plain", **TASK)
    assert max(info["parity_max_abs_error"].values()) < 2e-6
    int8 = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    assert int8["int8_matmuls"] == {"deberta-v2": 6, "xlnet": 7}[family] * PLAIN_LAYERS
    assert int8["fp32_matmuls"] == 1


@pytest.mark.parametrize("form", ["model.onnx", "model_unpadded.onnx"])
def test_the_graph_says_that_every_token_has_logits(form: str, graph: Callable[..., Path]) -> None:
    path = graph("bert").with_name(form)
    (output,) = onnx.load(path, load_external_data=False).graph.output
    shape = [axis.dim_value or axis.dim_param for axis in output.type.tensor_type.shape.dim]
    assert shape == ["batch", "length", len(LABELS)]


def test_the_unpadded_form_has_a_row_for_each_token_up_to_the_classifier(
    graph: Callable[..., Path], tmp_path: Path
) -> None:
    model = onnx.load(graph("bert").with_name("model_unpadded.onnx"))
    (classifier,) = [node for node in model.graph.node if node.name == "classifier/MatMul"]
    model.graph.output.append(onnx.helper.make_tensor_value_info(classifier.output[0], 1, None))
    write_model(model, tmp_path / "m.onnx")
    session = open_session(tmp_path / "m.onnx")
    feed = {value.name: texts()[value.name] for value in session.get_inputs()}
    (rows,) = session.run([classifier.output[0]], feed)
    assert np.asarray(rows).shape == (1, sum(LENGTHS), len(LABELS))


def test_no_weight_of_the_last_layer_is_absorbed_and_the_pooler_is_gone(graph: Callable[..., Path]) -> None:
    model = onnx.load(graph("bert"))
    matmul_names = matmuls(model.graph)
    assert not matmul_names.stacked
    assert len(matmul_names.fp32) == 6 * LAYERS + 1
    assert head_matmuls(model.graph) == output_matmuls(model.graph) == ("classifier/MatMul",)
    assert not [node.name for node in model.graph.node if "pooler" in node.name]


@pytest.mark.parametrize("part", [f"layer {LAYERS}", "head"])
@pytest.mark.parametrize("form", ["model.onnx", "model_unpadded.onnx"])
def test_a_wrong_graph_is_not_kept_and_the_message_names_the_part(
    part: str, form: str, checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GRAPH_HEADS, "tagging", wrong_head(GRAPH_HEADS["tagging"], part, unpadded="unpadded" in form))
    with pytest.raises(
        CheckFailed, match=rf"{form}: logits differ from torch's.*; the first part that differs is {part}$"
    ):
        export_onnx(checkpoint("bert"), tmp_path, graph="fast", **TASK)
    assert not list(tmp_path.glob("*.onnx"))


def test_what_stands_in_the_padding_is_not_compared(checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """In padding the unpadded form repeats the logits of some real token, while torch computes the padding's own."""
    info = export_onnx(checkpoint("bert"), tmp_path, graph="fast", **TASK)
    assert max(info["unpadded_parity_max_abs_error"].values()) < 2e-6
    padded, unpadded = (logits(tmp_path / f"model{form}.onnx", texts()) for form in ("", "_unpadded"))
    hidden = texts()["attention_mask"] == 0
    assert np.abs(padded[hidden] - unpadded[hidden]).max() > 0.1
    np.testing.assert_allclose(padded[~hidden], unpadded[~hidden], rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("family", "int8_format"), covering(["bert", "distilbert", "albert", "mpnet"], ["static", "dynamic"], ["mpnet"])
)
def test_all_matmuls_but_the_classifier_s_become_int8(
    family: str, int8_format: str, graph: Callable[..., Path], tmp_path: Path
) -> None:
    source, feed = graph(family), texts()
    spec = Quantize(
        method="dynamic", reduce_range=True
    )  # 7-bit weights: ALBERT's of 8 bits saturate on CPUs without VNNI
    info = quantize_onnx(source, tmp_path, spec, int8_format=int8_format, feeds=[feed])
    projection = family == "albert"
    assert (info["int8_matmuls"], info["weight_only_matmuls"]) == (6 * LAYERS + projection, 0)
    assert info["fp32_matmuls"] == 1
    assert {name: why for name, why in info["stayed_fp32"].items() if "MatMul" in name} == {
        "classifier/MatMul": CLASSIFIER
    }
    padded, unpadded = (tmp_path / f"model_quantized{form}.onnx" for form in ("", "_unpadded"))
    if int8_format == "dynamic":  # dynamic ranges agree only without padding, which would change them
        feed |= {"attention_mask": np.ones_like(feed["attention_mask"]), "input_ids": feed["input_ids"] + 5}
    mask = feed["attention_mask"]
    int8, other, exact = (real_rows(logits(path, feed), mask) for path in (padded, unpadded, source))
    np.testing.assert_allclose(int8, other, atol=2e-3)
    assert 0 < np.abs(int8 - exact).max() < 0.2 * np.abs(exact).max()


def test_an_int8_form_that_differs_at_a_real_token_is_refused(graph: Callable[..., Path], tmp_path: Path) -> None:
    quantize_onnx(graph("bert"), tmp_path, Quantize(method="dynamic"), int8_format="static", feeds=[texts()])
    padded, unpadded = (tmp_path / f"model_quantized{form}.onnx" for form in ("", "_unpadded"))
    _check_same(unpadded, padded, padded=True)
    model = onnx.load(padded)
    (bias,) = [tensor for tensor in model.graph.initializer if tensor.name == "classifier.bias"]
    bias.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bias) + 1, bias.name))
    write_model(model, tmp_path / "other.onnx")
    with pytest.raises(CheckFailed, match="logits differ by"):
        _check_same(unpadded, tmp_path / "other.onnx", padded=True)


def test_the_noise_of_int8_is_told_of_every_layer_and_not_of_padding(
    graph: Callable[..., Path], tmp_path: Path
) -> None:
    feed = texts()
    quantize_onnx(graph("bert"), tmp_path, Quantize(method="dynamic"), int8_format="static", feeds=[feed])
    other = {**feed, "input_ids": np.where(feed["attention_mask"], feed["input_ids"], 50)}
    decibels, again = (
        signal_to_noise(graph("bert"), tmp_path / "model_quantized.onnx", [each]) for each in (feed, other)
    )
    assert decibels == again
    assert "classifier/MatMul" in decibels
    assert sum("output.dense" in name for name in decibels) == 2 * LAYERS
    assert all(value is not None and value > 5 for value in decibels.values())


def test_a_simulated_file_gives_the_logits_of_every_token(graph: Callable[..., Path], tmp_path: Path) -> None:
    spec = Quantize(method="dynamic", reduce_range=True)  # 7 bits: no saturation on any CPU
    quantize_onnx(graph("bert"), tmp_path, spec, int8_format="static", feeds=[texts()])
    path, short = tmp_path / "model_quantized.onnx", {name: value[:2, :9] for name, value in texts().items()}
    feeds = [texts(), short]
    for feed, outputs in zip(feeds, simulate(path, feeds, saturating=False), strict=True):
        assert outputs.shape == (*feed["input_ids"].shape, len(LABELS))
        mine, expected = (real_rows(each, feed["attention_mask"]) for each in (outputs, logits(path, feed)))
        assert np.median(np.abs(mine - expected)) < 1e-4  # rarely a value rounds the other way


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_model_in_training_for_int8_computes_what_its_file_does(
    family: str, graph: Callable[..., Path], tmp_path: Path
) -> None:
    spec = Quantize(method="qat", reduce_range=True)  # 7 bits, as above
    model, feed = tagger_of(family), texts()
    written = build_fast(model, kind="tagging")
    assert written is not None
    form, _ = quant_spec_of(written, spec)
    assert not any(use.first for use in form.uses)
    sources = tuple(dict.fromkeys(use.source for use in form.uses if use.source is not None))
    spans = calibrate(written, sources, [feed], method="minmax", percentile=100)
    quant = FakeQuant(form, {name: (span.low, span.high) for name, span in spans.items()}, ranges="learned")
    with fake_quantized(model, quant), torch.no_grad():
        model_logits = model(**{name: torch.from_numpy(value) for name, value in feed.items()}).logits.numpy()
    ranges = {name: Range(*ends) for name, ends in quant.input_ranges().items()}
    info = quantize_onnx(graph(family), tmp_path, spec, trained=Trained(ranges, {}, {}))
    assert info["int8_matmuls"] == len(ranges)
    mask = feed["attention_mask"]
    int8 = real_rows(logits(tmp_path / "model_quantized.onnx", feed), mask)
    # Both round alike; rarely a value that fp32 sums in another order falls half-way and rounds the other way.
    assert np.median(np.abs(real_rows(model_logits, mask) - int8)) < 1e-4
