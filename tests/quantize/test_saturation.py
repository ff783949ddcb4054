"""Simulated 16-bit sums against their definition, and against what ONNX Runtime computes on this CPU."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from small_graphs import every_row, logits_of, model_of

from compress.graphs.model_files import write_model
from compress.machine import has_vnni, saturates
from compress.quantize import FILES, quantize_onnx
from compress.quantize.simulation import count_saturated, int8_matmul, simulate, simulate_clipping
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

SHAPES = [(1, 8, 16), (1, 7, 3), (3, 2, 1), (5, 65, 37), (9, 96, 40), (2, 1, 4)]


def operands(rows: int, inner: int, columns: int, largest: int = 127) -> tuple[np.ndarray, np.ndarray]:
    """Return quantized inputs and weights of which many pairs overflow 16 bits, above and below, and many do not."""
    rng = np.random.default_rng(rows * inner)
    levels = rng.integers(0, 256, (rows, inner))
    levels[:, : inner // 2] = rng.integers(200, 256, (rows, inner // 2))
    weight = rng.integers(-largest, largest + 1, (inner, columns))
    weight[: inner // 2] = np.sign(weight[: inner // 2]) * rng.integers(largest - 10, largest + 1, columns)
    return levels.astype(np.uint8), weight.astype(np.int8)


def defined(levels: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the product and its saturated pairs, computed one sum at a time as the instruction is documented."""
    product, saturated = np.zeros((len(levels), weight.shape[1]), int), 0
    for row, column in np.ndindex(product.shape):
        products = [int(a) * int(b) for a, b in zip(levels[row], weight[:, column], strict=True)] + [0]
        for first, second in zip(products[0::2], products[1::2], strict=False):
            pair = max(-32768, min(32767, first + second))
            saturated += pair != first + second
            product[row, column] += pair
    return product, saturated


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_clipped_as_defined(shape: tuple[int, int, int]) -> None:
    levels, weight = operands(*shape)
    expected, saturated = defined(levels, weight)
    clipping = simulate_clipping(levels, weight)
    assert clipping.saturated == saturated
    assert clipping.pairs == shape[0] * -(-shape[1] // 2) * shape[2]
    zero = 100
    exact = (levels.astype(int) - zero) @ weight.astype(int)
    np.testing.assert_array_equal(int8_matmul(levels, weight, zero, saturating=False), exact)
    taken_off = zero * weight.astype(int).sum(axis=0)
    np.testing.assert_array_equal(int8_matmul(levels, weight, zero, saturating=True), expected - taken_off)


def test_there_is_something_to_clip() -> None:
    levels, weight = operands(9, 96, 40)
    clipping = simulate_clipping(levels, weight)
    assert clipping.saturated > 1000
    assert clipping.over.min() < 0 < clipping.over.max()


@pytest.mark.parametrize(
    ("first", "second", "excess"), [(127, 127, 32003), (-127, -127, -32002), (64, 64, 0), (127, 1, 0), (127, 2, 128)]
)
def test_the_limits_are_those_of_16_bits(first: int, second: int, excess: int) -> None:
    levels, weight = np.full((1, 2), 255, np.uint8), np.array([[first], [second]], np.int8)
    assert simulate_clipping(levels, weight).over.tolist() == [[excess]]


def test_7_bits_never_leave_16() -> None:
    levels, weight = np.full((4, 6), 255, np.uint8), np.full((6, 3), 63, np.int8)
    assert simulate_clipping(levels, weight).saturated == 0
    assert simulate_clipping(levels, -weight).saturated == 0
    assert simulate_clipping(levels, weight + np.int8(2)).saturated == 4 * 3 * 3


def test_unsigned_weights_have_another_kernel() -> None:
    levels, weight = operands(9, 96, 40)
    assert simulate_clipping(levels, weight.view(np.uint8)).saturated == 0


def runtimes_product(levels: np.ndarray, weight: np.ndarray, kind: str, folder: Path, zero: int = 100) -> np.ndarray:
    """Return ONNX Runtime's (levels - zero) × weight; unsigned weights have 128 added."""
    middle = np.full(weight.shape[1], 128 if weight.dtype == np.uint8 else 0, weight.dtype)
    stored = {
        "w": weight,
        "wz": middle,
        "az": np.array(zero, np.uint8),
        "s": np.float32(1),
        "ws": np.ones(weight.shape[1], np.float32),
    }
    if kind == "MatMulInteger":
        node, out = helper.make_node(kind, ["a", "w", "az", "wz"], ["y"]), TensorProto.INT32
    else:
        node = helper.make_node(kind, ["a", "w", "s", "ws", "az", "wz"], ["y"], domain="com.microsoft")
        out = TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("a", TensorProto.UINT8, [None, weight.shape[0]])],
        [helper.make_tensor_value_info("y", out, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in stored.items() if name in node.input],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / "product.onnx")
    return np.asarray(open_session(folder / "product.onnx", threads=1).run(None, {"a": levels})[0])


kinds = pytest.mark.parametrize("kind", ["MatMulInteger", "MatMulIntegerToFloat"])


@pytest.mark.skipif(
    not saturates(), reason="this CPU sums int8 products exactly (VNNI, or not x86): nothing to compare"
)
@kinds
@pytest.mark.parametrize("shape", SHAPES)
def test_onnx_runtime_saturates_here_to_the_bit(shape: tuple[int, int, int], kind: str, tmp_path: Path) -> None:
    levels, weight = operands(*shape)
    product = runtimes_product(levels, weight, kind, tmp_path)
    np.testing.assert_array_equal(product, int8_matmul(levels, weight, 100, saturating=True))


@pytest.mark.skipif(not has_vnni(), reason="this CPU has no exact sums of int8 products (no VNNI, no Arm dotprod)")
@kinds
def test_onnx_runtime_is_exact_here(kind: str, tmp_path: Path) -> None:
    levels, weight = operands(9, 96, 40)
    product = runtimes_product(levels, weight, kind, tmp_path)
    np.testing.assert_array_equal(product, int8_matmul(levels, weight, 100, saturating=False))


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="about x86 kernels")
@kinds
def test_7_bit_and_unsigned_weights_are_exact_on_every_x86(kind: str, tmp_path: Path) -> None:
    for largest, offset in ((63, 0), (127, 128)):
        levels, weight = operands(9, 96, 40, largest)
        stored = (weight.astype(int) + offset).astype(np.uint8) if offset else weight
        product = runtimes_product(levels, stored, kind, tmp_path)
        np.testing.assert_array_equal(product, int8_matmul(levels, weight, 100, saturating=False))


def feeds() -> list[dict[str, np.ndarray]]:
    batches = []
    for length in (3, 9):
        ids = np.random.default_rng(length).integers(5, 120, (1, length))
        batches.append({"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)})
    return batches


def logits(path: Path) -> np.ndarray:
    session = open_session(path, threads=1)
    names = [value.name for value in session.get_inputs()]
    return np.concatenate([session.run(["logits"], {n: feed[n] for n in names})[0] for feed in feeds()])  # type: ignore[arg-type]


def saturated_file(
    tiny_onnx: Callable[..., Path], folder: Path, int8_format: str, graph: str = "fast", **settings: Any
) -> Path:
    """Quantize a model in which all weights of a layer's first feed-forward matmul are at the outermost value."""
    model = onnx.load(tiny_onnx("bert", graph))
    shapes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    node = next(
        n
        for n in model.graph.node
        if n.op_type == "MatMul" and len(shape := shapes.get(n.input[1], ())) == 2 and shape[1] > shape[0]
    )
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == node.input[1])
    value = np.full(tuple(tensor.dims), 0.2, np.float32)
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    quantize_onnx(
        folder / "model.onnx", folder, Quantize(method="dynamic", **settings), int8_format=int8_format, feeds=feeds()
    )
    return folder / FILES[int8_format]


@pytest.mark.parametrize(
    ("graph", "int8_format"), [("plain", "dynamic"), ("fast", "dynamic"), ("fast", "static"), ("fast", "qdq")]
)
def test_a_whole_file_is_simulated(
    graph: str, int8_format: str, tiny_onnx: Callable[..., Path], tmp_path: Path
) -> None:
    """The simulation matches this CPU and not the other kind."""
    path = saturated_file(tiny_onnx, tmp_path / "m", int8_format, graph)
    here, there = (np.concatenate(simulate(path, feeds(), saturating=one)) for one in (saturates(), not saturates()))
    assert np.abs(here - logits(path)).max() < 0.1 * np.abs(here - there).max()


def test_layers_are_counted(tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    counts = {
        int8_format: count_saturated(saturated_file(tiny_onnx, tmp_path / int8_format, int8_format), feeds())
        for int8_format in ("dynamic", "static", "qdq")
    }
    worst = {int8_format: max(layers, key=lambda layer: layer.saturated) for int8_format, layers in counts.items()}
    for int8_format, layers in counts.items():
        assert "intermediate" in worst[int8_format].name
        assert worst[int8_format].saturated > 0.05 * worst[int8_format].pairs
        assert [layer.pairs for layer in layers] == [layer.pairs for layer in counts["static"]]
    assert worst["static"].saturated == worst["qdq"].saturated  # the same ranges and weights
    seven = saturated_file(tiny_onnx, tmp_path / "seven", "dynamic", reduce_range=True)
    assert sum(layer.saturated for layer in count_saturated(seven, feeds())) == 0


def test_both_operands_may_have_a_zero_point(tmp_path: Path) -> None:
    draws = np.random.default_rng(2)
    stored = {"t": draws.integers(0, 256, (12, 8), np.uint8), "w": draws.integers(0, 256, (8, 4), np.uint8)}
    stored |= {"a": np.array(131, np.uint8), "z": np.array(117, np.uint8)}
    nodes = [
        helper.make_node("Gather", ["t", "input_ids"], ["x"], name="rows"),
        helper.make_node("MatMulInteger", ["x", "w", "a", "z"], ["p"], name="product"),
        helper.make_node("Cast", ["p"], ["logits"], name="cast", to=TensorProto.FLOAT),
    ]
    write_model(model_of(nodes, stored, 4), tmp_path / "m.onnx")
    feeds = every_row(12, texts=3)
    (simulated,) = simulate(tmp_path / "m.onnx", feeds, saturating=False)
    assert (simulated == logits_of(tmp_path / "m.onnx", feeds)).all()
