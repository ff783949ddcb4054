"""Which tensors of an ONNX graph are constant, and which matmuls multiply by a weight, in int8 or in fp32.

Imports `onnx`: for export and quantization, not for what a shipped bundle needs.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

INTEGER_MATMULS = {"MatMulInteger", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QLinearMatMul"}
FLOAT_MATMULS = {"MatMul", "Gemm", "FusedMatMul", "FusedGemm"}


@dataclass(frozen=True)
class Matmuls:
    """Names of the matmul nodes: by a constant weight (`int8` or `fp32`), by a weight that is cut into a matrix for each
    attention head (`stacked`, fp32), or of two activations."""

    int8: tuple[str, ...]
    fp32: tuple[str, ...]
    activation: tuple[str, ...]
    stacked: tuple[str, ...] = ()


def constants(graph: GraphProto) -> set[str]:
    """Return the tensors that depend on no input: initialisers, and whatever is computed from them alone."""
    known = {tensor.name for tensor in graph.initializer}
    for node in graph.node:  # ONNX lists nodes in topological order
        if all(not name or name in known for name in node.input):
            known.update(node.output)
    return known


def _weights(node: NodeProto) -> tuple[str, ...]:
    """The operands of a matmul (not its scales, zero points or bias)."""
    return (node.input[0], node.input[3]) if node.op_type == "QLinearMatMul" else tuple(node.input[:2])


def is_sequence_first(graph: GraphProto) -> bool:
    """Whether hidden states are [length, batch, width] rather than [batch, length, width]."""
    return any(node.op_type == "Transpose" and node.input[0] == "input_ids" for node in graph.node)


def matmuls(graph: GraphProto) -> Matmuls:
    """Classify every matmul; a weight behind Identity, Transpose or DequantizeLinear is a weight.

    A plain matmul of two DequantizeLinear is int8, because a runtime fuses the three.
    """
    known = constants(graph)
    cut = _reshaped_constants(graph, known)
    dequantized = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    by_kind: dict[str, list[str]] = {"int8": [], "fp32": [], "activation": [], "stacked": []}
    for node in graph.node:
        operands = _weights(node)
        if node.op_type not in INTEGER_MATMULS | FLOAT_MATMULS or all(name in known for name in operands):
            continue
        if not any(name in known for name in operands):
            kind = "activation"
        elif node.op_type in INTEGER_MATMULS or all(name in dequantized for name in operands):
            kind = "int8"
        else:
            kind = "stacked" if any(name in cut for name in operands) else "fp32"
        by_kind[kind].append(node.name)
    return Matmuls(**{kind: tuple(names) for kind, names in by_kind.items()})


def _reshaped_constants(graph: GraphProto, known: set[str]) -> set[str]:
    """Return the constants with more than two axes, such as a Reshape makes, and whatever is computed from them."""
    cut = {tensor.name for tensor in graph.initializer if len(tensor.dims) > 2}
    for node in graph.node:
        if node.output[0] in known and (node.op_type == "Reshape" or any(name in cut for name in node.input)):
            cut.update(node.output)
    return cut


def stored_weight(graph: GraphProto, matmul: NodeProto) -> str | None:
    """Return the initialiser that a matmul's weight comes from, through any nodes that transpose or cut it."""
    producer = {name: node for node in graph.node for name in node.output}
    stored = {tensor.name for tensor in graph.initializer}
    known = constants(graph)
    name = next((name for name in _weights(matmul) if name in known), "")
    while name not in stored and name in producer:
        name = producer[name].input[0]
    return name if name in stored else None


def output_matmuls(graph: GraphProto) -> tuple[str, ...]:
    """Return the matmuls nearest to the graph's outputs: the classifier's. There are none if the outputs come directly from
    the last LayerNormalization."""
    return _matmuls_behind(graph, INTEGER_MATMULS | FLOAT_MATMULS | {"LayerNormalization"})


def head_matmuls(graph: GraphProto) -> tuple[str, ...]:
    """Return the matmuls between the last LayerNormalization and the outputs: pooler and classifier, with one row per text.
    A graph without LayerNormalization has no encoder: then return only the classifier's."""
    if not any(node.op_type == "LayerNormalization" for node in graph.node):
        return output_matmuls(graph)
    return _matmuls_behind(graph, {"LayerNormalization"})


def _matmuls_behind(graph: GraphProto, ends: Container[str]) -> tuple[str, ...]:
    """Return every matmul from the outputs back to the first nodes of the kinds `ends`, those included."""
    producer = {name: node for node in graph.node for name in node.output}
    names: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [output.name for output in graph.output]
    while waiting:
        node = producer.get(waiting.pop())
        if node is None or node.output[0] in seen:
            continue
        seen.add(node.output[0])
        if node.op_type in INTEGER_MATMULS | FLOAT_MATMULS:
            names[node.name] = None
        if node.op_type not in ends:
            waiting.extend(node.input)
    return tuple(names)
