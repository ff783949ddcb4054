"""fp32 graph -> int8 graph, each product in the layout asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, numpy_helper

from .choosing import Choice, weights_alone
from .layouts import LAYOUTS, MICROSOFT, Product
from .ranges import Range
from .rewriting import Rewrite


def to_integers(
    model: ModelProto,
    choice: Choice,
    layouts: Mapping[str, str],
    *,
    ranges: Mapping[str, Range] | None = None,
    corrections: Mapping[str, np.ndarray] | None = None,
    per_channel: bool = True,
    reduce_range: bool = False,
) -> ModelProto:
    """A copy of `model` with the products of `choice` as int8. By the name of a product: its layout, the range of its input
    where levels are fixed, and what is added to its bias there."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    rewrite = Rewrite(model, per_channel=per_channel, reduce_range=reduce_range)
    alone, adds = weights_alone(model, choice), biases(model.graph)
    fused = {adds[name].name for name in choice.int8 if name in adds}
    int8, tables, kept = set(choice.int8), set(choice.tables), set(choice.kept)
    for node in list(model.graph.node):
        # What is left out here is found by the counts.
        if node.name in int8 and node.op_type == "MatMul" and rewrite.is_matrix(node.input[1]):
            add = adds.get(node.name)
            product = Product(node, add, _bias(node, add))
            if corrections and add is not None and layouts[node.name] != "dynamic":
                product = _corrected(rewrite, node, add, corrections[node.name])
            LAYOUTS[layouts[node.name]](rewrite, product, (ranges or {}).get(node.name))
        elif node.name in tables:
            rewrite.look_up(node)
        elif node.name not in fused:
            if node.name not in kept:
                node.input[:] = [rewrite.restored(name) if name in alone else name for name in node.input]
            rewrite.keep(node)
    if any(node.domain == MICROSOFT for node in rewrite.finish().graph.node):
        model.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return model


def _corrected(rewrite: Rewrite, node: NodeProto, add: NodeProto, correction: np.ndarray) -> Product:
    """With a bias of its own: products that share one, as ALBERT's, err differently."""
    bias = numpy_helper.to_array(rewrite.stored[_bias(node, add)])
    name = rewrite.constant(f"{node.name}/bias", (bias + correction).astype(np.float32))
    own = NodeProto()
    own.CopyFrom(add)
    own.input[:] = [node.output[0], name]
    return Product(node, own, name)


def biases(graph: GraphProto) -> dict[str, NodeProto]:
    """Product -> the Add of a stored vector that alone reads it."""
    vectors = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 1}
    readers = Counter(name for node in graph.node for name in node.input)
    makers = {node.output[0]: node for node in graph.node if node.op_type == "MatMul"}
    found: dict[str, NodeProto] = {}
    for node in graph.node:
        if node.op_type == "Add" and any(name in vectors for name in node.input):
            product = next((makers[name] for name in node.input if name in makers), None)
            if product is not None and readers[product.output[0]] == 1:
                found[product.name] = node
    return found


def _bias(product: NodeProto, add: NodeProto | None) -> str:
    return "" if add is None else next(name for name in add.input if name != product.output[0])
