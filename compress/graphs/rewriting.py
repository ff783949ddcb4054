"""Changes to an ONNX graph, in place, that preserve its outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from typing import Any

import onnx
from onnx import GraphProto, NodeProto


def split_gemms(graph: GraphProto, names: Container[str]) -> None:
    """Replace the named Gemm nodes, if alpha and beta are 1, by a MatMul of the same name and an Add, and store their
    weights in MatMul's layout."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    nodes: list[NodeProto] = []
    for node in graph.node:
        options = attributes(node)
        plain = all(options.get(name, 1) == 1 for name in ("alpha", "beta")) and not options.get("transA")
        if node.op_type != "Gemm" or node.name not in names or not plain or node.input[1] not in stored:
            nodes.append(node)
            continue
        weight, matmul = stored[node.input[1]], f"{node.output[0]}_product"
        if options.get("transB"):
            array = onnx.numpy_helper.to_array(weight).T.copy()
            weight = onnx.numpy_helper.from_array(array, f"{weight.name}_turned")
            if weight.name not in stored:
                graph.initializer.append(weight)
                stored[weight.name] = weight
        unbiased = len(node.input) < 3 or not node.input[2]
        output = node.output[0] if unbiased else matmul
        nodes.append(onnx.helper.make_node("MatMul", [node.input[0], weight.name], [output], name=node.name))
        if not unbiased:
            name = f"{node.name}_bias"
            nodes.append(onnx.helper.make_node("Add", [matmul, node.input[2]], [node.output[0]], name=name))
    replace_all(graph.node, nodes)
    drop_unused(graph)


def strip_identities(graph: GraphProto) -> int:
    """Remove Identity nodes, rewiring their readers; return how many were removed.

    Quantizers look for an initialiser directly at a matmul's input: ALBERT's shared weights are behind Identity nodes and
    would silently stay fp32. An Identity that feeds a graph output stays.
    """
    outputs = {value.name for value in graph.output}
    source: dict[str, str] = {}
    kept: list[NodeProto] = []
    for node in graph.node:
        node.input[:] = [source.get(name, name) for name in node.input]
        if node.op_type == "Identity" and node.output[0] not in outputs:
            source[node.output[0]] = node.input[0]
        else:
            kept.append(node)
    removed = len(graph.node) - len(kept)
    replace_all(graph.node, kept)
    return removed


def fold_transposes(graph: GraphProto) -> int:
    """Store a weight transposed if all its readers transpose it alike; return how many nodes were removed.

    The exporter does so for a large weight only if one node reads it. ALBERT's shared weights would stay behind Transpose
    nodes, which quantizers do not look behind, and be transposed at every run.
    """
    stored = {tensor.name: tensor for tensor in graph.initializer}
    outputs = {value.name for value in graph.output}
    reads: dict[str, set[tuple[int, ...] | None]] = {name: {None} for name in outputs}
    for node in graph.node:
        order = None if node.output[0] in outputs else _transpose_permutation(node, stored)
        for name in node.input:
            reads.setdefault(name, set()).add(order)
    common_order = {name: next(iter(ways)) for name, ways in reads.items() if name in stored and len(ways) == 1}
    folded = {name: order for name, order in common_order.items() if order is not None}
    for name, order in folded.items():
        array = onnx.numpy_helper.to_array(stored[name]).transpose(order)
        stored[name].CopyFrom(onnx.numpy_helper.from_array(array.copy(), name))
    gone = [node for node in graph.node if node.op_type == "Transpose" and node.input[0] in folded]
    source = {node.output[0]: node.input[0] for node in gone}
    kept = [node for node in graph.node if node.output[0] not in source]
    for node in kept:
        node.input[:] = [source.get(name, name) for name in node.input]
    replace_all(graph.node, kept)
    return len(gone)


def _transpose_permutation(node: NodeProto, stored: Container[str]) -> tuple[int, ...] | None:
    """Return the permutation of a Transpose of a stored tensor; None for any other node."""
    if node.op_type != "Transpose" or node.input[0] not in stored:
        return None
    return next((tuple(entry.ints) for entry in node.attribute if entry.name == "perm"), None)


def merge_duplicates(graph: GraphProto) -> int:
    """Store equal initialisers once; return how many were removed."""
    first: dict[bytes, str] = {}
    source: dict[str, str] = {}
    for tensor in graph.initializer:
        name = first.setdefault(_content(tensor), tensor.name)
        if name != tensor.name:
            source[tensor.name] = name
    for node in graph.node:
        node.input[:] = [source.get(name, name) for name in node.input]
    _keep_initializers(graph, set(first.values()))
    return len(source)


def drop_unused(graph: GraphProto) -> None:
    """Remove initialisers that no node reads."""
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    _keep_initializers(graph, read)


def _keep_initializers(graph: GraphProto, names: Container[str]) -> None:
    """Keep only the initialisers in `names`, in place: a new list would copy them, weights and all."""
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name not in names:
            del graph.initializer[place]


def drop_dead(graph: GraphProto) -> None:
    """Remove nodes that no output depends on."""
    wanted = {value.name for value in graph.output}
    kept: list[NodeProto] = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(node.input)
    replace_all(graph.node, reversed(kept))


def _content(tensor: onnx.TensorProto) -> bytes:
    array = onnx.numpy_helper.to_array(tensor)
    shape = f"{tensor.data_type}:{list(tensor.dims)}".encode()
    return hashlib.sha256(shape + array.tobytes()).digest()


def attributes(node: NodeProto) -> dict[str, Any]:
    return {entry.name: onnx.helper.get_attribute_value(entry) for entry in node.attribute}


def replace_all(field, items: Iterable) -> None:
    items = list(items)
    del field[:]
    field.extend(items)
