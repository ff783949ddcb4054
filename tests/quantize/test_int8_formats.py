"""Each int8_format against NumPy and against the others, and the form of its file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from default_suite import covering
from onnx import ModelProto, TensorProto, helper, numpy_helper

from compress.errors import CompressError
from compress.graphs.matmuls import matmuls
from compress.graphs.model_files import write_model
from compress.graphs.rewriting import split_gemms
from compress.quantize import FILES, quantize_onnx
from compress.quantize.int8_graph import FORMATS, to_int8_graph
from compress.quantize.node_selection import QuantizationPlan
from compress.quantize.portable import make_portable
from compress.quantize.ranges import Range, calibrate
from compress.quantize.weights import to_int8
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
int8_formats = pytest.mark.parametrize("int8_format", list(FORMATS))
generator = np.random.default_rng(0)
WEIGHT = generator.normal(size=(16, 24)).astype(np.float32) * np.linspace(0.1, 3, 24, dtype=np.float32)
BIAS = generator.normal(size=24).astype(np.float32)
STATES = (generator.normal(size=(2, 5, 16)) * 2 + 0.7).astype(np.float32)


def linear(bias: bool = True) -> ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p" if bias else "y"], name="linear/MatMul")]
    nodes += [helper.make_node("Add", ["p", "b"], ["y"], name="linear/Add")] if bias else []
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 5, size]) for name, size in (("x", 16), ("y", 24))
    ]
    stored = [numpy_helper.from_array(value, name) for name, value in (("w", WEIGHT), ("b", BIAS))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], stored[: 1 + bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def run(model: ModelProto, folder: Path, feed: dict[str, np.ndarray], name: str = "y") -> np.ndarray:
    write_model(model, folder / "m.onnx")
    onnx.checker.check_model(str(folder / "m.onnx"))
    return np.asarray(open_session(folder / "m.onnx", threads=1).run([name], feed)[0])


def rounded(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return `x` quantized to 256 values between low and high, and dequantized."""
    low, high = min(low, 0), max(high, 0)
    step = (high - low) / 255
    zero = round(-low / step)
    return (np.clip(np.rint(x / step) + zero, 0, 255) - zero) * step


def channels(w: np.ndarray) -> np.ndarray:
    """Return the weight with each column quantized to ±63; with more, a CPU without VNNI may saturate when it adds two
    products."""
    step = np.abs(w).max(0) / 63
    return np.rint(w / step) * step


NAME = "linear/MatMul"
PLAN = QuantizationPlan(int8=(NAME,), weight_only=(), kept=(), tables=())


@pytest.mark.parametrize("bias", [True, False])
@int8_formats
def test_a_product_is_the_product_of_the_rounded(int8_format: str, bias: bool, tmp_path: Path) -> None:
    low, high = (
        (float(STATES.min()), float(STATES.max())) if int8_format == "dynamic" else (-3.0, 4.0)
    )  # 4.0 clips some values
    model = to_int8_graph(linear(bias), PLAN, {NAME: int8_format}, ranges={NAME: Range(low, high)}, reduce_range=True)
    product = run(model, tmp_path, {"x": STATES})
    expected = rounded(STATES.astype(float), low, high) @ channels(WEIGHT.astype(float)) + (BIAS if bias else 0)
    # fp32 may round a value half-way between two either way: one step of one input, times its largest weight.
    assert np.quantile(np.abs(product - expected), 0.9) < 1e-4
    assert np.abs(product - expected).max() < (high - low) / 255 * np.abs(WEIGHT).max() * 2


def test_inputs_are_turned_into_levels_once(tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    """A layer's queries, keys and values read the same states."""
    quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, Quantize(method="dynamic"))
    nodes = Counter(node.op_type for node in onnx.load(tmp_path / "model_quantized.onnx").graph.node)
    assert nodes["MatMulInteger"] == 10
    assert nodes["DynamicQuantizeLinear"] == 8  # two fewer: those of the first layer's keys and values


def test_weights_to_int8() -> None:
    levels, scale = to_int8(WEIGHT, 1)
    assert levels.dtype == np.int8
    assert scale.shape == (24,)
    assert np.abs(levels).max(0).tolist() == [127] * 24
    assert (np.abs(levels * scale - WEIGHT) <= scale / 2 + 1e-6).all()
    rows, own = to_int8(WEIGHT, 0)
    assert own.shape == (16,)
    assert (np.abs(rows * own[:, None] - WEIGHT) <= own[:, None] / 2 + 1e-6).all()
    whole, one = to_int8(WEIGHT, None, bits=7)
    assert one.shape == ()
    assert np.abs(whole).max() == 63
    zeros, unit = to_int8(np.zeros((3, 2), np.float32), 1)
    assert not zeros.any()
    assert unit.tolist() == [1, 1]


@pytest.mark.parametrize(("low", "high", "zero"), [(0, 5, 0), (-5, 0, 255), (-1, 3, 64), (1, 3, 0), (0, 0, 0)])
def test_zero_is_a_level_of_every_range(low: float, high: float, zero: int) -> None:
    scale, point = Range(low, high).parameters()
    assert (scale.dtype, point.dtype) == (np.float32, np.uint8)
    assert point == zero
    assert scale > 0


def feeds(count: int = 4) -> list[dict[str, np.ndarray]]:
    batches = []
    for number in range(count):
        ids = np.random.default_rng(number).integers(5, 120, (3, 9))
        mask = (np.arange(9) < np.array([[9], [6], [2 + number]])).astype(np.int64)
        batches.append({"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})
    return batches


@pytest.mark.parametrize("opset", [20, 23])
@pytest.mark.parametrize("percentile", [100.0, 99.0])
def test_ranges_hold_their_share_of_the_real_tokens_values(
    percentile: float, opset: int, tiny_onnx: Callable[..., Path]
) -> None:
    """With opset 20 the states are [length, batch, width]."""
    model = onnx.load(tiny_onnx("bert", "fast", opset))
    name = next(node.output[0] for node in model.graph.node if node.op_type == "LayerNormalization")
    (span,) = calibrate(model, [name], feeds(), percentile=percentile).values()
    model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    session = open_session_of(model)
    taken = [name_.name for name_ in session.get_inputs()]
    kept = []
    for feed in feeds():
        states = np.asarray(session.run([name], {key: feed[key] for key in taken})[0])
        states = states.swapaxes(0, 1) if opset == 20 else states
        assert states.shape[:2] == feed["attention_mask"].shape
        kept.append(states[feed["attention_mask"].astype(bool)])
    values = np.concatenate(kept).ravel()
    share = (100 - percentile) / 2
    wanted = np.percentile(values, [share, 100 - share])
    assert [span.low, span.high] == pytest.approx(wanted.tolist(), abs=0.05 if percentile < 100 else 1e-6)
    inside = ((values >= span.low) & (values <= span.high)).mean()
    assert inside >= percentile / 100


def open_session_of(model: ModelProto) -> Any:
    import onnxruntime

    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def logits(path: Path) -> np.ndarray:
    session = open_session(path, threads=1)
    rows = []
    for feed in feeds():
        rows.append(
            np.asarray(session.run(["logits"], {value.name: feed[value.name] for value in session.get_inputs()})[0])
        )
    return np.concatenate(rows)


@pytest.mark.parametrize(("family", "opset"), covering(FAMILIES, [20, 23], ["mpnet"]))
def test_the_formats_of_a_calibrated_model_agree(
    family: str, opset: int, tiny_onnx: Callable[..., Path], tmp_path: Path
) -> None:
    source = tiny_onnx(family, "fast", opset)
    infos = {
        int8_format: quantize_onnx(source, tmp_path, Quantize(method="dynamic"), int8_format=int8_format, feeds=feeds())
        for int8_format in ("static", "qdq")
    }
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"model_quantized.onnx", "model_quantized_unpadded.onnx", "model_qdq.onnx"}
    static, qdq, full = (logits(path) for path in (tmp_path / FILES["static"], tmp_path / FILES["qdq"], source))
    assert infos["static"]["int8_matmuls"] == infos["qdq"]["int8_matmuls"] > 0
    error = np.abs(full - static).mean()
    assert 0 < error < 0.35 * (full - full.mean(0)).std()  # 8 bits per tensor at width 16
    assert np.abs(static - qdq).mean() < 0.5 * error  # they differ where fp32 sums round to the next quantized value


@pytest.mark.parametrize("family", FAMILIES)
def test_the_portable_graph_is_the_same_function(family: str, tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    source = tiny_onnx(family, "fast", 23)
    model = onnx.load(source)
    assert "Attention" in {node.op_type for node in model.graph.node}
    make_portable(model)
    write_model(model, tmp_path / "portable.onnx")
    onnx.checker.check_model(str(tmp_path / "portable.onnx"), full_check=True)
    assert {"Attention", "Expand"}.isdisjoint({node.op_type for node in model.graph.node})
    assert model.opset_import[0].version == 20
    before = logits(source)
    np.testing.assert_allclose(logits(tmp_path / "portable.onnx"), before, atol=2e-6)  # fp32 sums in another order


def test_the_portable_file_has_standard_operators_alone(tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, Quantize(method="dynamic"), int8_format="qdq", feeds=feeds())
    model = onnx.load(tmp_path / "model_qdq.onnx")
    assert {node.domain for node in model.graph.node} == {""}
    assert model.ir_version == 9
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 20)]
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds["MatMulInteger"] == 0
    assert len(matmuls(model.graph).int8) == 10
    static = quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, Quantize(method="static"), feeds=feeds())
    static_kinds = Counter(node.op_type for node in onnx.load(tmp_path / "model_quantized.onnx").graph.node)
    assert static_kinds["MatMulIntegerToFloat"] == static["int8_matmuls"] == 10
    assert static_kinds["QuantizeLinear"] == 8


@pytest.mark.parametrize("int8_format", ["static", "qdq"])
def test_without_texts_there_are_no_ranges(int8_format: str, tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(
        CompressError, match=f"the {int8_format} format takes the ranges of activations from training texts"
    ):
        quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, Quantize(method="dynamic"), int8_format=int8_format)
    assert list(tmp_path.iterdir()) == []


def test_a_weight_that_is_multiplied_both_ways_is_stored_once(tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    """ALBERT's keys are an integer matmul in the first layer and absorbed in the last."""
    quantize_onnx(tiny_onnx("albert", "fast"), tmp_path, Quantize(method="dynamic"))
    graph = onnx.load(tmp_path / "model_quantized.onnx").graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    name = next(name for name in stored if name.endswith("key.weight_quantized"))
    readers = Counter(node.op_type for node in graph.node if name in node.input)
    assert readers == {"MatMulInteger": 1, "Cast": 1}
    assert name.removesuffix("_quantized") not in stored


def test_one_layer_is_portable_too(tmp_path: Path) -> None:
    """Its only attention is that of the first token, which is not an Attention node."""
    import torch
    from transformers import AutoModelForSequenceClassification, BertConfig

    from compress.export.fast import build_fast

    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 120, "hidden_size": 32, "num_attention_heads": 1, "intermediate_size": 64}
    config = BertConfig(**sizes, num_hidden_layers=1, max_position_embeddings=24)
    model = build_fast(AutoModelForSequenceClassification.from_config(config).eval())
    assert model is not None
    write_model(model, tmp_path / "model.onnx")
    quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"), int8_format="qdq", feeds=feeds())
    assert onnx.load(tmp_path / "model_qdq.onnx").opset_import[0].version == 20
    assert np.abs(logits(tmp_path / "model_qdq.onnx") - logits(tmp_path / "model.onnx")).max() < 0.1


@pytest.mark.parametrize(("options", "taken"), [({"transB": 1}, True), ({"transB": 1, "alpha": 0.5}, False)])
def test_a_gemm_is_taken_apart_or_left_alone(options: dict[str, Any], taken: bool, tmp_path: Path) -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="linear/Gemm", **options)
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [5, size]) for name, size in (("x", 16), ("y", 24))
    ]
    stored = [numpy_helper.from_array(value, name) for name, value in (("w", WEIGHT.T.copy()), ("b", BIAS))]
    graph = helper.make_graph([node], "g", values[:1], values[1:], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    split_gemms(model.graph, {"linear/Gemm"})
    plan = QuantizationPlan(int8=("linear/Gemm",), weight_only=(), kept=(), tables=())
    int8_model = to_int8_graph(model, plan, {"linear/Gemm": "dynamic"}, reduce_range=True)
    assert len(matmuls(int8_model.graph).int8) == taken
    product = run(int8_model, tmp_path, {"x": STATES[0]})
    expected = options.get("alpha", 1) * STATES[0] @ WEIGHT + BIAS
    assert np.abs(product - expected).max() < (0.03 if taken else 1e-6) * np.abs(expected).max()
