"""An int8 file computed in NumPy, with or without 16-bit saturation, for its answers on the other kind of CPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..graphs.matmuls import INTEGER_MATMULS
from ..graphs.rewriting import drop_dead, replace_all
from ..sessions.outputs import graph_logits
from .int8_graph import MICROSOFT
from .sampling import Feed, Sample

Array = np.ndarray
LOWEST, HIGHEST = -(2**15), 2**15 - 1


@dataclass(frozen=True)
class Layer:
    """A matmul: of its `pairs` sums of two products, `saturated` exceed 16 bits."""

    name: str
    pairs: int
    saturated: int


def count_saturated(path: Path, feeds: Sequence[Feed]) -> tuple[Layer, ...]:
    """Count the saturated sums of each int8 matmul of the file on `feeds`, without padding, with the activations that this
    CPU computes. Weights that are unsigned, or of 7 bits, cannot saturate. CompressError: the file."""
    model = onnx.load(path)
    _fuse_dequantized(model)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type in INTEGER_MATMULS and node.input[1] in weights]
    tensors = tuple(dict.fromkeys(node.input[0] for node in nodes))
    totals = {node.name: [0, 0] for node in nodes}
    stored = {node.name: numpy_helper.to_array(weights[node.input[1]]) for node in nodes}
    with Sample(model, tensors, feeds, kind=TensorProto.UINT8) as sample:
        for batch in sample.batches():
            for node in nodes:
                here = simulate_clipping(_as_rows(batch[node.input[0]]), stored[node.name])
                totals[node.name][0] += here.pairs
                totals[node.name][1] += here.saturated
    return tuple(Layer(name, *counts) for name, counts in totals.items())


def simulate(path: Path, feeds: Sequence[Feed], *, saturating: bool) -> list[Array]:
    """Return the float32 logits of the file on each of `feeds`, computed in NumPy: int8 matmuls exactly, or as on a CPU
    without VNNI. Sums in fp32 have a different order than in a runtime, so a value may round to the neighbouring quantized value."""
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(path)
    _fuse_dequantized(model)
    evaluator = ReferenceEvaluator(model, new_ops=_operators(saturating))
    names = {value.name for value in model.graph.input}
    outputs = [value.name for value in model.graph.output]

    def run(wanted: Sequence[str], feed: Feed) -> Sequence[Array]:
        return evaluator.run([*wanted], {name: feed[name] for name in names})  # type: ignore[return-value]

    return [graph_logits(outputs, lambda wanted, feed=feed: run(wanted, feed)) for feed in feeds]


def _operators(saturating: bool) -> list[Any]:
    from onnx.reference.op_run import OpRun

    def integers(activations: Array, weight: Array, zero: Array | None, weight_zero: Array | None) -> Array:
        rows = _as_rows(activations)
        product = int8_matmul(rows, weight, int(zero) if zero is not None else 0, saturating=saturating)
        if weight_zero is not None and np.any(weight_zero):
            below = rows.astype(np.int64) - int(zero if zero is not None else 0)
            product = product - (below.sum(axis=1, keepdims=True) * weight_zero.astype(np.int64)).astype(np.int32)
        return product.reshape(*activations.shape[:-1], weight.shape[1])

    class MatMulInteger(OpRun):
        def _run(self, a: Array, b: Array, zero: Any = None, weight_zero: Any = None) -> tuple[Array]:  # type: ignore[override]
            return (integers(a, b, zero, weight_zero),)

    class MatMulIntegerToFloat(OpRun):
        op_domain = MICROSOFT

        def _run(  # type: ignore[override]
            self,
            a: Array,
            b: Array,
            scale: Array,
            weight_scale: Array,
            zero: Any = None,
            weight_zero: Any = None,
            bias: Any = None,
        ) -> tuple[Array]:
            product = integers(a, b, zero, weight_zero).astype(np.float32) * (scale * weight_scale)
            return ((product if bias is None else product + bias).astype(np.float32),)

    return [MatMulInteger, MatMulIntegerToFloat]


def _as_rows(activations: Array) -> Array:
    return activations.reshape(-1, activations.shape[-1])


def _fuse_dequantized(model: ModelProto) -> None:
    """Replace a matmul of two DequantizeLinear by the integer matmul that runtimes fuse the three into. In place."""
    makers = {node.output[0]: node for node in model.graph.node if node.op_type == "DequantizeLinear"}
    stored = {tensor.name for tensor in model.graph.initializer}

    def fuse_matmul(node: NodeProto) -> NodeProto:
        parts = [makers.get(name) for name in node.input]
        if node.op_type != "MatMul" or None in parts or parts[1].input[0] not in stored:  # type: ignore[union-attr]
            return node
        (a, scale, zero), (b, weight_scale, *weight_zero) = (part.input for part in parts)  # type: ignore[union-attr]
        inputs = [a, b, scale, weight_scale, zero, *weight_zero]
        return helper.make_node("MatMulIntegerToFloat", inputs, node.output, name=node.name, domain=MICROSOFT)

    nodes = [fuse_matmul(node) for node in model.graph.node]
    if any(node.domain == MICROSOFT for node in nodes) and MICROSOFT not in {e.domain for e in model.opset_import}:
        model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    replace_all(model.graph.node, nodes)
    drop_dead(model.graph)


@dataclass(frozen=True)
class Clipped:
    """Saturation in one matmul uint8 [rows, inner] × int8 [inner, columns]: of `pairs` sums of two products, `saturated`
    exceed 16 bits. `over`, int32 [rows, columns]: the sum of the excess."""

    pairs: int
    saturated: int
    over: Array


def simulate_clipping(activations: Array, weight: Array) -> Clipped:
    """Compute what AVX2's vpmaddubsw loses: it adds products 2i and 2i + 1 of a row and a column in int16 with saturation,
    and these sums in 32 bits. Zero points play no part: ONNX Runtime subtracts them afterwards.

    Unsigned weights lose nothing, because ONNX Runtime has another kernel for them. Only the pairs that could saturate with
    the largest quantized values of their two activations are examined, which are few: 7-bit weights have none.
    """
    pairs = activations.shape[0] * -(-activations.shape[1] // 2) * weight.shape[1]
    over = np.zeros((activations.shape[0], weight.shape[1]), np.int32)
    if weight.dtype != np.int8 or not activations.size:
        return Clipped(pairs, 0, over)
    left, right = (_pad_to_even(array, axis).astype(np.int32) for array, axis in ((activations, 1), (weight, 0)))
    first, second = right[0::2], right[1::2]
    possible = _exceeding(left.max(axis=0)[:, None], first, second)
    saturated = 0
    for column in np.flatnonzero(possible.any(axis=0)):
        which = np.flatnonzero(possible[:, column])
        sums = left[:, 2 * which] * first[which, column] + left[:, 2 * which + 1] * second[which, column]
        excess = sums - np.clip(sums, LOWEST, HIGHEST)
        saturated += int(np.count_nonzero(excess))
        over[:, column] = excess.sum(axis=1)
    return Clipped(pairs, saturated, over)


def _exceeding(largest: Array, first: Array, second: Array) -> Array:
    """Return bool [pairs, columns]: whether quantized values from 0 to `largest` [2 × pairs, 1] can exceed 16 bits."""
    high = largest[0::2] * np.maximum(first, 0) + largest[1::2] * np.maximum(second, 0)
    low = largest[0::2] * np.minimum(first, 0) + largest[1::2] * np.minimum(second, 0)
    return (high > HIGHEST) | (low < LOWEST)


def int8_matmul(activations: Array, weight: Array, zero: int, *, saturating: bool) -> Array:
    """Return int32 [rows, columns], (`activations` - `zero`) × `weight`, as a CPU without VNNI computes it, or exactly."""
    # float64 holds every sum of fewer than 2^37 products exactly, and NumPy has no fast integer matmul.
    exact = (activations.astype(np.float64) - zero) @ weight.astype(np.float64)
    exact = exact.astype(np.int32)
    return exact - simulate_clipping(activations, weight).over if saturating else exact


def _pad_to_even(array: Array, axis: int) -> Array:
    """Pad an odd axis with a zero, because its last entry has no partner."""
    width = [(0, array.shape[axis] % 2 if other == axis else 0) for other in range(2)]
    return np.pad(array, width)
