"""Clean the exporter's graph: nodes and weights named after modules, weights stored once, nothing unused."""

from __future__ import annotations

import ast
from collections import Counter

from onnx import GraphProto, ModelProto, NodeProto

from ..graphs.matmuls import FLOAT_MATMULS
from ..graphs.rewriting import drop_unused, fold_transposes, merge_duplicates, strip_identities
from .tracing import PREFIX

_SCOPES = "pkg.torch.onnx.name_scopes"


def clean(model: ModelProto) -> None:
    """Clean `model` in place. Metadata is removed too: stack traces contain local paths and shapes of the trace."""
    graph = model.graph
    strip_identities(graph)
    fold_transposes(graph)
    merge_duplicates(graph)
    drop_unused(graph)
    _name_nodes(graph)
    _name_tensors(graph)
    # Shapes of the trace contradict what a quantizer infers ("existing shape differs").
    del graph.value_info[:]
    _strip_notes(model)


def _scope(node: NodeProto) -> str:
    """Return the module that a node came from, as in the checkpoint's weight names; "" if it is unknown."""
    for entry in node.metadata_props:
        if entry.key == _SCOPES:
            path = ast.literal_eval(entry.value)[-2:][0]
            return path.removeprefix(f"{PREFIX}.") if path.startswith(f"{PREFIX}.") else ""
    return ""


def _name_nodes(graph: GraphProto) -> None:
    """Name nodes like `bert.encoder.layer.0.output.dense/MatMul`, for `exclude` patterns and error messages.

    A module that is used again (ALBERT's shared layer) gets `_1`, `_2`, … in order of use.
    """
    seen: Counter[str] = Counter()
    for node in graph.node:
        scope = _scope(node)
        name = f"{scope}/{node.op_type}" if scope else node.op_type
        node.name = f"{name}_{seen[name]}" if seen[name] else name
        seen[name] += 1


def _name_tensors(graph: GraphProto) -> None:
    """Name weights after their module, without the wrapper's prefix, including those that folding transposed."""
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    initializers = {tensor.name for tensor in graph.initializer}
    renamed: dict[str, str] = {}
    for name in sorted(initializers):
        if name.startswith(f"{PREFIX}."):
            renamed[name] = name.removeprefix(f"{PREFIX}.")
    for node in graph.node:
        if node.op_type in FLOAT_MATMULS and "/" in node.name:
            for name in node.input[:2]:
                if name in initializers and name not in renamed:
                    renamed[name] = f"{node.name.rpartition('/')[0]}.weight"
    unique = {old: new for old, new in renamed.items() if new not in taken and list(renamed.values()).count(new) == 1}
    for tensor in graph.initializer:
        tensor.name = unique.get(tensor.name, tensor.name)
    for node in graph.node:
        node.input[:] = [unique.get(name, name) for name in node.input]


def _strip_notes(model: ModelProto) -> None:
    graph = model.graph
    model.doc_string = graph.doc_string = ""
    del graph.metadata_props[:]
    del graph.quantization_annotation[:]
    for item in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        item.doc_string = ""
        del item.metadata_props[:]
