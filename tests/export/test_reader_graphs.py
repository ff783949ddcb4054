"""Graphs of question answering models, fast, unpadded and plain, against torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering
from family_teachers import LAYERS, reader_of
from plain_teachers import LAYERS as PLAIN_LAYERS
from plain_teachers import plain_reader
from reader_graphs import FAST, LENGTHS, OUTPUTS, SHAPES, TASK, arrays, logits, shapes_of, texts, traced_of
from wrong_graphs import wrong_head

from compress.errors import CheckFailed, CompressError
from compress.evaluate import predict_onnx
from compress.export import export_onnx
from compress.export.fast.heads import GRAPH_HEADS
from compress.export.forms import FORMS
from compress.export.tracing import describe, example
from compress.graphs.matmuls import head_matmuls, matmuls, output_matmuls
from compress.graphs.model_files import get_metadata, write_model
from compress.models.features.named import logits_of
from compress.models.features.predict import predict_logits
from compress.quantize import quantize_onnx
from compress.quantize.checking import CLASSIFIER
from compress.sessions.opening import open_session
from compress.sessions.outputs import real_rows, run_logits
from compress.spec.quantization import Quantize
from compress.tasks import Encoded


@pytest.mark.parametrize(("family", "opset"), covering(FAST, [20, 23], ["mpnet"]))
def test_every_family_agrees_with_torch(family: str, opset: int, reader_graph: Callable[..., Path]) -> None:
    traced = traced_of(family)
    for name in ("model.onnx", "model_unpadded.onnx"):
        path = reader_graph(family, "fast", opset).with_name(name)
        for batch, length in SHAPES:
            inputs = example(traced, batch, length)
            with torch.inference_mode():
                output = traced.model(**inputs)
            expected = torch.stack([output.start_logits, output.end_logits], -1).numpy()
            actual, mask = logits(path, arrays(inputs)), inputs["attention_mask"].numpy()
            assert actual.shape == (batch, length, 2)
            # fp32 sums in another order, logits of order 1
            np.testing.assert_allclose(real_rows(actual, mask), real_rows(expected, mask), rtol=0, atol=2e-6)


PLAIN = ("modernbert", "bert", "albert", "distilbert", "roberta", "electra", "mpnet", "ernie")


@pytest.mark.slow  # torch's exporter
@pytest.mark.parametrize("family", PLAIN)
def test_the_plain_graph_agrees_with_torch(
    family: str, reader_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    info = export_onnx(reader_checkpoint(family), tmp_path, graph="plain", **TASK)
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
            actual, expected = form(**inputs), logits_of(model, model(**inputs), inputs["attention_mask"])
        assert actual.shape == expected.shape == (batch, length, 2)
        torch.testing.assert_close(actual[real], expected[real], rtol=0, atol=2e-6)  # fp32 sums in another order


@pytest.mark.slow
@pytest.mark.parametrize("family", ["deberta-v2", "xlnet"])
def test_a_form_s_graph_is_exported_and_becomes_int8(
    family: str, reader_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    info = export_onnx(reader_checkpoint(family), tmp_path, graph="plain", **TASK)
    assert max(info["parity_max_abs_error"].values()) < 2e-6
    assert list(shapes_of(tmp_path / "model.onnx")) == OUTPUTS
    int8 = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    assert int8["int8_matmuls"] == {"deberta-v2": 6, "xlnet": 7}[family] * PLAIN_LAYERS
    assert int8["fp32_matmuls"] == 1
    assert CLASSIFIER in int8["stayed_fp32"].values()


@pytest.mark.parametrize("form", ["model.onnx", "model_unpadded.onnx"])
def test_the_graph_names_its_outputs_as_optimum_and_transformers_do(
    form: str, reader_graph: Callable[..., Path]
) -> None:
    path = reader_graph("bert").with_name(form)
    assert shapes_of(path) == {name: ["batch", "length"] for name in OUTPUTS}
    metadata = get_metadata(onnx.load(path, load_external_data=False))
    assert (metadata["kind"], metadata["labels"]) == ("span", '["start", "end"]')


def test_the_unpadded_form_has_a_row_for_each_token_up_to_the_last_layer(
    reader_graph: Callable[..., Path], tmp_path: Path
) -> None:
    model = onnx.load(reader_graph("bert").with_name("model_unpadded.onnx"))
    (last,) = [node for node in model.graph.node if node.name == "qa_outputs/MatMul"]
    model.graph.output.append(onnx.helper.make_tensor_value_info(last.output[0], 1, None))
    write_model(model, tmp_path / "m.onnx")
    session = open_session(tmp_path / "m.onnx")
    feed = {value.name: texts()[value.name] for value in session.get_inputs()}
    (rows,) = session.run([last.output[0]], feed)
    assert np.asarray(rows).shape == (1, sum(LENGTHS), 2)


def test_no_weight_of_the_last_layer_is_absorbed_and_the_pooler_is_gone(reader_graph: Callable[..., Path]) -> None:
    model = onnx.load(reader_graph("bert"))
    matmul_names = matmuls(model.graph)
    assert not matmul_names.stacked
    assert len(matmul_names.fp32) == 6 * LAYERS + 1
    assert head_matmuls(model.graph) == output_matmuls(model.graph) == ("qa_outputs/MatMul",)
    assert not [node.name for node in model.graph.node if "pooler" in node.name]


@pytest.mark.parametrize("part", [f"layer {LAYERS}", "head"])
@pytest.mark.parametrize("form", ["model.onnx", "model_unpadded.onnx"])
def test_a_wrong_graph_is_not_kept_and_the_message_names_the_part(
    part: str, form: str, reader_checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(GRAPH_HEADS, "span", wrong_head(GRAPH_HEADS["span"], part, unpadded="unpadded" in form))
    with pytest.raises(
        CheckFailed, match=rf"{form}: logits differ from torch's.*; the first part that differs is {part}$"
    ):
        export_onnx(reader_checkpoint("bert"), tmp_path, graph="fast", **TASK)
    assert not list(tmp_path.glob("*.onnx"))


def test_a_graph_that_takes_the_start_for_the_end_is_not_kept(
    reader_checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = GRAPH_HEADS["span"]

    def turned(*parts: Any) -> str:
        return parts[0].op("Gather", [head.logits(*parts), parts[0].integers(1, 0)], "turned", axis=2)

    monkeypatch.setitem(GRAPH_HEADS, "span", replace(head, logits=turned))
    with pytest.raises(CheckFailed, match="the first part that differs is head"):
        export_onnx(reader_checkpoint("bert"), tmp_path, graph="fast", **TASK)


def test_a_checkpoint_without_the_head_or_with_another_is_refused(tmp_path: Path) -> None:
    reader_of("bert").base_model.save_pretrained(tmp_path / "encoder")
    with pytest.raises(CompressError, match=r"expected the weights qa_outputs\.bias, qa_outputs\.weight; found none"):
        export_onnx(tmp_path / "encoder", tmp_path, graph="fast", **TASK)
    reader_of("bert", num_labels=3).save_pretrained(tmp_path / "three")  # transformers can create it, but not run it
    with pytest.raises(CompressError, match="expected 2 outputs for the task, found 3"):
        export_onnx(tmp_path / "three", tmp_path, graph="fast", **TASK)


def test_what_stands_in_the_padding_is_not_compared(reader_checkpoint: Callable[[str], Path], tmp_path: Path) -> None:
    """In padding the unpadded form repeats the logits of some real token, while torch computes the padding's own."""
    info = export_onnx(reader_checkpoint("bert"), tmp_path, graph="fast", **TASK)
    assert max(info["unpadded_parity_max_abs_error"].values()) < 2e-6
    padded, unpadded = (logits(tmp_path / f"model{form}.onnx", texts()) for form in ("", "_unpadded"))
    hidden = texts()["attention_mask"] == 0
    assert np.abs(padded[hidden] - unpadded[hidden]).max() > 0.1
    np.testing.assert_allclose(padded[~hidden], unpadded[~hidden], rtol=0, atol=2e-6)


class _Windows(Encoded):
    """For each row, the start and end logits of all its tokens in turn, without padding."""

    def collected(self, parts: Any) -> np.ndarray:
        outputs = np.zeros((len(self), 2 * int(self.lengths.max())), np.float32)
        for rows, part in parts:
            for row, each in zip(rows, part, strict=True):
                outputs[row, : 2 * self.lengths[row]] = each[: self.lengths[row]].ravel()
        return outputs


def test_a_split_is_predicted_alike_by_torch_and_by_the_graph(reader_graph: Callable[..., Path]) -> None:
    full = texts()
    rows = [(ids[:length], types[:length]) for ids, types, length in zip(
        full["input_ids"].astype(np.int32), full["token_type_ids"].astype(np.int8), LENGTHS, strict=True
    )]  # fmt: skip
    encoded = _Windows([ids for ids, _ in rows], [types for _, types in rows], np.zeros((len(rows), 2), np.int64))
    mine, theirs = (
        predict_logits(reader_of("bert"), encoded, 0),
        predict_onnx(reader_graph("bert"), encoded, 0, threads=1),
    )
    assert mine.shape == theirs.shape == (6, 28)
    np.testing.assert_allclose(theirs, mine, rtol=0, atol=2e-6)  # as above
    assert np.abs(theirs[0, ::2] - theirs[0, 1::2]).max() > 0.1  # start and end differ


def test_what_is_run_has_the_logits_side_by_side(reader_graph: Callable[..., Path]) -> None:
    outputs = run_logits(open_session(reader_graph("bert")), texts())
    assert np.array_equal(outputs, logits(reader_graph("bert"), texts()))
