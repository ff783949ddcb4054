"""fp32 graph -> int8 graph, each matmul in the int8_format asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, numpy_helper

from .int8_formats import FORMATS, MICROSOFT, Matmul
from .node_selection import QuantizationPlan, weights_alone
from .ranges import Range
from .rewriting import Rewrite


def to_int8_graph(
    model: ModelProto,
    plan: QuantizationPlan,
    int8_formats: Mapping[str, str],
    *,
    ranges: Mapping[str, Range] | None = None,
    corrections: Mapping[str, np.ndarray] | None = None,
    per_channel: bool = True,
    reduce_range: bool = False,
) -> ModelProto:
    """A copy of `model` with the matmuls of `plan` as int8. By the name of a matmul: its int8_format, the range of its input
    where levels are fixed, and what is added to its bias there."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    rewrite = Rewrite(model, per_channel=per_channel, reduce_range=reduce_range)
    alone, adds = weights_alone(model, plan), biases(model.graph)
    fused = {adds[name].name for name in plan.int8 if name in adds}
    int8, tables, kept = set(plan.int8), set(plan.tables), set(plan.kept)
    for node in list(model.graph.node):
        # What is left out here is found by the counts.
        if node.name in int8 and node.op_type == "MatMul" and rewrite.is_matrix(node.input[1]):
            add = adds.get(node.name)
            matmul = Matmul(node, add, _bias(node, add))
            if corrections and add is not None and int8_formats[node.name] != "dynamic":
                matmul = _corrected(rewrite, node, add, corrections[node.name])
            FORMATS[int8_formats[node.name]](rewrite, matmul, (ranges or {}).get(node.name))
        elif node.name in tables:
            rewrite.look_up(node)
        elif node.name not in fused:
            if node.name not in kept:
                node.input[:] = [rewrite.restored(name) if name in alone else name for name in node.input]
            rewrite.keep(node)
    if any(node.domain == MICROSOFT for node in rewrite.finish().graph.node):
        model.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return model


def _corrected(rewrite: Rewrite, node: NodeProto, add: NodeProto, correction: np.ndarray) -> Matmul:
    """With a bias of its own: matmuls that share one, as ALBERT's, err differently."""
    bias = numpy_helper.to_array(rewrite.stored[_bias(node, add)])
    name = rewrite.constant(f"{node.name}/bias", (bias + correction).astype(np.float32))
    own = NodeProto()
    own.CopyFrom(add)
    own.input[:] = [node.output[0], name]
    return Matmul(node, own, name)


def biases(graph: GraphProto) -> dict[str, NodeProto]:
    """Matmul -> the Add of a stored vector that alone reads it."""
    vectors = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 1}
    readers = Counter(name for node in graph.node for name in node.input)
    makers = {node.output[0]: node for node in graph.node if node.op_type == "MatMul"}
    found: dict[str, NodeProto] = {}
    for node in graph.node:
        if node.op_type == "Add" and any(name in vectors for name in node.input):
            matmul = next((makers[name] for name in node.input if name in makers), None)
            if matmul is not None and readers[matmul.output[0]] == 1:
                found[matmul.name] = node
    return found


def _bias(matmul: NodeProto, add: NodeProto | None) -> str:
    return "" if add is None else next(name for name in add.input if name != matmul.output[0])
