"""Int8 weights from a traced program's own quantization: what the program would compute from constants at every run is
stored instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto, numpy_helper

from ..graphs.rewriting import attributes, drop_dead, drop_unused, merge_duplicates
from .rewriting import Rewrite

Array = np.ndarray


@dataclass(frozen=True)
class _QuantizedWeight:
    """The int8 weight [in, out] of a matmul, quantized from the initialiser `name`; `scale` is a scalar or [out]."""

    name: str
    values: Array
    scale: Array
    zero: Array


def fold_weights(model: ModelProto) -> ModelProto:
    """Replace QuantizeLinear → Clip → DequantizeLinear (→ Transpose) of a stored weight by an int8 initialiser [in, out] and
    a DequantizeLinear, with the same quantized values. A Gemm of such a weight becomes a MatMul of the same name and an Add, because
    runtimes accept no fp32 bias in an int8 Gemm. Works in place and returns `model`."""
    rewrite = Rewrite(model, per_channel=True, reduce_range=False)
    makers = {name: node for node in model.graph.node for name in node.output}
    for node in list(model.graph.node):
        weight = _quantized_weight(node, makers, rewrite) if node.op_type in ("MatMul", "Gemm") else None
        if weight is None:
            rewrite.keep(node)
        else:
            _write(rewrite, node, weight)
    rewrite.finish()
    drop_dead(model.graph)
    drop_unused(model.graph)
    merge_duplicates(model.graph)
    return model


def _write(rewrite: Rewrite, node: NodeProto, weight: _QuantizedWeight) -> None:
    names = [f"{weight.name}{part}" for part in ("_quantized", "_scale", "_zero_point")]
    for name, value in zip(names, (weight.values, weight.scale, weight.zero), strict=True):
        rewrite.constant(name, value)
    dequantized, axis = f"{weight.name}_restored", 1 if weight.scale.ndim else None
    rewrite.once("DequantizeLinear", names, [dequantized], f"{weight.name}/DequantizeLinear", axis=axis)
    bias = node.input[2] if len(node.input) > 2 else ""
    matmul = f"{node.output[0]}_product" if bias else node.output[0]
    rewrite.add("MatMul", [node.input[0], dequantized], [matmul], node.name)
    if bias:
        rewrite.add("Add", [matmul, bias], [node.output[0]], f"{node.name}_bias")


def _quantized_weight(node: NodeProto, makers: Mapping[str, NodeProto], rewrite: Rewrite) -> _QuantizedWeight | None:
    """Return the quantized weight of a matmul; None if it is not quantized, or not a plain [in, out] matrix."""
    options = attributes(node)
    if any(options.get(name, 1) != 1 for name in ("alpha", "beta")) or options.get("transA"):
        return None
    dequantize, transposed = makers.get(node.input[1]), bool(options.get("transB"))
    while dequantize is not None and dequantize.op_type == "Transpose" and attributes(dequantize).get("perm") == [1, 0]:
        dequantize, transposed = makers.get(dequantize.input[0]), not transposed
    if dequantize is None or dequantize.op_type != "DequantizeLinear":
        return None
    clip = makers.get(dequantize.input[0])
    quantize = makers.get(clip.input[0]) if clip is not None and clip.op_type == "Clip" else clip
    if quantize is None or quantize.op_type != "QuantizeLinear" or not rewrite.is_matrix(quantize.input[0]):
        return None
    weight, scale, zero = (numpy_helper.to_array(rewrite.stored[name]) for name in quantize.input)
    axis = attributes(quantize).get("axis", 1) if scale.ndim else None
    if zero.dtype != np.int8 or axis not in (None, 1 if transposed is False else 0):
        return None
    shape = {0: (-1, 1), 1: (-1,), None: ()}[axis]
    # In float32, rounding half to even, as the operator does.
    whole = np.rint(weight / scale.reshape(shape)) + zero.reshape(shape).astype(np.float32)
    quantized = np.clip(whole, *_limits(clip if clip is not quantize else None, rewrite)).astype(np.int8)
    return _QuantizedWeight(quantize.input[0], quantized.T.copy() if transposed else quantized, scale, zero)


def _limits(clip: NodeProto | None, rewrite: Rewrite) -> tuple[int, int]:
    """Return the limits of int8, narrowed to those of the Clip if there is one."""
    limits = (numpy_helper.to_array(rewrite.stored[name]) for name in (clip.input[1:3] if clip is not None else ()))
    low, high = map(int, limits) if clip is not None else (-128, 127)
    return max(low, -128), min(high, 127)
