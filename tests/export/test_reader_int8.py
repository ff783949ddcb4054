"""Which parts of question answering graphs become int8, and which stay as in fp32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering
from family_teachers import LAYERS, reader_of
from reader_graphs import OUTPUTS, logits, shapes_of, texts

from compress.errors import CheckFailed
from compress.export.fast import build_fast
from compress.graphs.model_files import write_model
from compress.models.fake_quant.classifier import FakeQuant, fake_quantized
from compress.models.features.named import logits_of
from compress.quantize import quantize_onnx
from compress.quantize.checking import CLASSIFIER
from compress.quantize.int8_files import _check_same
from compress.quantize.noise import signal_to_noise
from compress.quantize.qat_params import Trained, quant_spec_of
from compress.quantize.ranges import Range, calibrate
from compress.quantize.simulation import simulate
from compress.sessions.outputs import real_rows
from compress.spec.quantization import Quantize

pytestmark = pytest.mark.end_to_end


@pytest.mark.parametrize(
    ("family", "int8_format"),
    covering(["bert", "distilbert", "albert", "mpnet"], ["static", "dynamic", "qdq"], ["mpnet"]),
)
def test_all_matmuls_but_the_last_become_int8(
    family: str, int8_format: str, reader_graph: Callable[..., Path], tmp_path: Path
) -> None:
    source, feed = reader_graph(family, "fast", 23 if int8_format == "qdq" else 20), texts()
    info = quantize_onnx(source, tmp_path, Quantize(method="dynamic"), int8_format=int8_format, feeds=[feed])
    projection = family == "albert"
    assert (info["int8_matmuls"], info["weight_only_matmuls"]) == (6 * LAYERS + projection, 0)
    assert info["fp32_matmuls"] == 1
    assert {name: why for name, why in info["stayed_fp32"].items() if "MatMul" in name} == {
        "qa_outputs/MatMul": CLASSIFIER
    }
    name = "model_qdq.onnx" if int8_format == "qdq" else "model_quantized.onnx"
    assert list(shapes_of(tmp_path / name)) == OUTPUTS
    if int8_format == "dynamic":  # dynamic ranges agree only without padding, which would change them
        feed |= {"attention_mask": np.ones_like(feed["attention_mask"]), "input_ids": feed["input_ids"] + 5}
    mask = feed["attention_mask"]
    int8, exact = (real_rows(logits(path, feed), mask) for path in (tmp_path / name, source))
    assert 0 < np.abs(int8 - exact).max() < 0.2 * np.abs(exact).max()
    if int8_format != "qdq":
        other = real_rows(logits(tmp_path / "model_quantized_unpadded.onnx", feed), mask)
        np.testing.assert_allclose(int8, other, atol=2e-3)


@pytest.mark.parametrize("side", [0, 1])
def test_an_int8_form_that_differs_at_a_real_token_is_refused(
    side: int, reader_graph: Callable[..., Path], tmp_path: Path
) -> None:
    quantize_onnx(reader_graph("bert"), tmp_path, Quantize(method="dynamic"), int8_format="static", feeds=[texts()])
    padded, unpadded = (tmp_path / f"model_quantized{form}.onnx" for form in ("", "_unpadded"))
    _check_same(unpadded, padded, padded=True)
    model = onnx.load(padded)
    (bias,) = [tensor for tensor in model.graph.initializer if tensor.name == "qa_outputs.bias"]
    moved = onnx.numpy_helper.to_array(bias) + np.eye(2, dtype=np.float32)[side]
    bias.CopyFrom(onnx.numpy_helper.from_array(moved, bias.name))
    write_model(model, tmp_path / "other.onnx")
    with pytest.raises(CheckFailed, match="logits differ by"):
        _check_same(unpadded, tmp_path / "other.onnx", padded=True)


def test_an_int8_file_whose_logits_are_not_finite_is_refused(reader_graph: Callable[..., Path], tmp_path: Path) -> None:
    model = onnx.load(reader_graph("bert"))
    (bias,) = [tensor for tensor in model.graph.initializer if tensor.name == "qa_outputs.bias"]
    bias.CopyFrom(onnx.numpy_helper.from_array(np.array([0, np.nan], np.float32), bias.name))  # of the end only
    write_model(model, tmp_path / "broken.onnx")
    with pytest.raises(CheckFailed, match="logits that are not finite"):
        quantize_onnx(tmp_path / "broken.onnx", tmp_path, Quantize(method="dynamic"))


def test_the_noise_of_int8_is_told_of_every_layer(reader_graph: Callable[..., Path], tmp_path: Path) -> None:
    quantize_onnx(reader_graph("bert"), tmp_path, Quantize(method="dynamic"), int8_format="static", feeds=[texts()])
    decibels = signal_to_noise(reader_graph("bert"), tmp_path / "model_quantized.onnx", [texts()])
    assert "qa_outputs/MatMul" in decibels
    assert sum("output.dense" in name for name in decibels) == 2 * LAYERS
    assert all(value is not None and value > 5 for value in decibels.values())


def test_a_simulated_file_gives_start_and_end_side_by_side(reader_graph: Callable[..., Path], tmp_path: Path) -> None:
    spec = Quantize(method="dynamic", reduce_range=True)  # 7 bits: no saturation on any CPU
    quantize_onnx(reader_graph("bert"), tmp_path, spec, int8_format="static", feeds=[texts()])
    path, short = tmp_path / "model_quantized.onnx", {name: value[:2, :9] for name, value in texts().items()}
    feeds = [texts(), short]
    for feed, outputs in zip(feeds, simulate(path, feeds, saturating=False), strict=True):
        assert outputs.shape == (*feed["input_ids"].shape, 2)
        mine, expected = (real_rows(each, feed["attention_mask"]) for each in (outputs, logits(path, feed)))
        assert np.median(np.abs(mine - expected)) < 1e-4  # rarely a value rounds the other way


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_a_model_in_training_for_int8_computes_what_its_file_does(
    family: str, reader_graph: Callable[..., Path], tmp_path: Path
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
        tensors = {name: torch.from_numpy(value) for name, value in feed.items()}
        model_logits = logits_of(model, model(**tensors), tensors["attention_mask"]).numpy()
    ranges = {name: Range(*ends) for name, ends in quant.input_ranges().items()}
    info = quantize_onnx(reader_graph(family), tmp_path, spec, trained=Trained(ranges, {}, {}))
    assert info["int8_matmuls"] == len(ranges)
    mask = feed["attention_mask"]
    int8 = real_rows(logits(tmp_path / "model_quantized.onnx", feed), mask)
    # Both round alike; rarely a value that fp32 sums in another order falls half-way and rounds the other way.
    assert np.median(np.abs(real_rows(model_logits, mask) - int8)) < 1e-4
