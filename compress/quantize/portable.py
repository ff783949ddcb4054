"""The fast graph in operators that older runtimes have, for the int8 format that is not specific to ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ..graphs.rewriting import attributes, drop_dead, drop_unused, replace_all

OPSET = 20  # the first with Gelu


def make_portable(model: ModelProto) -> None:
    """Replace opset 23's Attention by two matmuls with a Softmax between them, whose mask has one row per text. A newer
    opset becomes 20: for the operators in our graphs, later opsets only accept more types. In place."""
    graph = model.graph
    if max(entry.version for entry in model.opset_import) <= OPSET:
        return
    makers = {node.output[0]: node for node in graph.node}
    nodes: list[NodeProto] = []
    shapes: dict[str, list[int]] = {}
    for node in graph.node:
        nodes.extend(_plain_attention(node, makers, shapes) if node.op_type == "Attention" else [node])
    graph.initializer.extend(numpy_helper.from_array(np.array(shape, np.int64), name) for name, shape in shapes.items())
    replace_all(graph.node, nodes)
    drop_dead(graph)
    drop_unused(graph)
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", OPSET))


def _plain_attention(node: NodeProto, makers: dict[str, NodeProto], shapes: dict[str, list[int]]) -> list[NodeProto]:
    """Return the nodes of one Attention: queries, keys and values [batch, length, hidden] and a mask
    [batch, 1, length, length] -> [batch, length, hidden]."""
    heads = attributes(node)["q_num_heads"]
    query, key, value, mask = node.input
    if makers[mask].op_type == "Expand":  # one row per query, all equal
        mask = makers[mask].input[0]
    split, joined = f"int64:heads_{heads}", "int64:heads_joined"
    shapes |= {split: [0, 0, heads, -1], joined: [0, 0, -1]}
    stem, name = node.output[0], node.name
    nodes = []

    def add(kind: str, inputs: list[str], what: str, **attributes: Any) -> str:
        output = stem if what == "output" else f"{stem}_{what}"
        nodes.append(helper.make_node(kind, inputs, [output], name=f"{name}_{what}", **attributes))
        return output

    parts = {"query": (query, [0, 2, 1, 3]), "key": (key, [0, 2, 3, 1]), "value": (value, [0, 2, 1, 3])}
    by_head = {
        part: add("Transpose", [add("Reshape", [source, split], f"{part}_split")], part, perm=order)
        for part, (source, order) in parts.items()
    }
    scores = add("Add", [add("MatMul", [by_head["query"], by_head["key"]], "scores"), mask], "masked")
    context = add("MatMul", [add("Softmax", [scores], "softmax", axis=-1), by_head["value"]], "context")
    add("Reshape", [add("Transpose", [context], "joined", perm=[0, 2, 1, 3]), joined], "output")
    return nodes
