"""What an ONNX graph holds: which tensors are constant, which matmuls are int8, what may be stripped.

Imports `onnx`: for export and quantization, not for what a shipped bundle needs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import EncodeError
from onnx import GraphProto, ModelProto, NodeProto

from .atomic import write_bytes
from .errors import CheckFailed, CompressError
from .version import __version__

INTEGER_MATMULS = {"MatMulInteger", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QLinearMatMul"}
FLOAT_MATMULS = {"MatMul", "Gemm", "FusedMatMul", "FusedGemm"}
PRODUCER = "bert-compress"


@dataclass(frozen=True)
class Matmuls:
    """Names of the nodes that multiply matrices: by a constant weight (int8 or fp32), by a weight that is cut into a
    matrix for each attention head (`stacked`, fp32), or two activations."""

    int8: tuple[str, ...]
    fp32: tuple[str, ...]
    activation: tuple[str, ...]
    stacked: tuple[str, ...] = ()


def constants(graph: GraphProto) -> set[str]:
    """Tensors that depend on no input: initialisers, and whatever is computed from them alone."""
    known = {tensor.name for tensor in graph.initializer}
    for node in graph.node:  # ONNX lists nodes in topological order
        if all(not name or name in known for name in node.input):
            known.update(node.output)
    return known


def _weights(node: NodeProto) -> tuple[str, ...]:
    """The operands of a matmul (not its scales, zero points or bias)."""
    return (node.input[0], node.input[3]) if node.op_type == "QLinearMatMul" else tuple(node.input[:2])


def is_sequence_first(graph: GraphProto) -> bool:
    """Whether its states are [length, batch, width] and not [batch, length, width]."""
    return any(node.op_type == "Transpose" and node.input[0] == "input_ids" for node in graph.node)


def matmuls(graph: GraphProto) -> Matmuls:
    """Count every matmul; a weight behind Identity, Transpose or DequantizeLinear is a weight.

    A plain matmul of two DequantizeLinear is int8: a runtime takes the three together.
    """
    known = constants(graph)
    cut = _cut(graph, known)
    restored = {node.output[0] for node in graph.node if node.op_type == "DequantizeLinear"}
    found: dict[str, list[str]] = {"int8": [], "fp32": [], "activation": [], "stacked": []}
    for node in graph.node:
        operands = _weights(node)
        if node.op_type not in INTEGER_MATMULS | FLOAT_MATMULS or all(name in known for name in operands):
            continue
        if not any(name in known for name in operands):
            kind = "activation"
        elif node.op_type in INTEGER_MATMULS or all(name in restored for name in operands):
            kind = "int8"
        else:
            kind = "stacked" if any(name in cut for name in operands) else "fp32"
        found[kind].append(node.name)
    return Matmuls(**{kind: tuple(names) for kind, names in found.items()})


def _cut(graph: GraphProto, known: set[str]) -> set[str]:
    """Constants of more axes than two, such as a Reshape gives them, and what is made of them."""
    cut = {tensor.name for tensor in graph.initializer if len(tensor.dims) > 2}
    for node in graph.node:
        if node.output[0] in known and (node.op_type == "Reshape" or any(name in cut for name in node.input)):
            cut.update(node.output)
    return cut


def stored_weight(graph: GraphProto, matmul: NodeProto) -> str | None:
    """The initialiser that a matmul's weight is made of, through whatever turns or cuts it."""
    producer = {name: node for node in graph.node for name in node.output}
    stored = {tensor.name for tensor in graph.initializer}
    known = constants(graph)
    name = next((name for name in _weights(matmul) if name in known), "")
    while name not in stored and name in producer:
        name = producer[name].input[0]
    return name if name in stored else None


def output_matmuls(graph: GraphProto) -> tuple[str, ...]:
    """The matmuls nearest to the graph's outputs: the classifier's. None where it has none, and its outputs are made of the last
    LayerNormalization."""
    return _matmuls_behind(graph, INTEGER_MATMULS | FLOAT_MATMULS | {"LayerNormalization"})


def head_matmuls(graph: GraphProto) -> tuple[str, ...]:
    """The matmuls between the last LayerNormalization and the outputs: pooler and classifier, a row for each text. Of a
    graph without one, no encoder, the classifier alone."""
    if not any(node.op_type == "LayerNormalization" for node in graph.node):
        return output_matmuls(graph)
    return _matmuls_behind(graph, {"LayerNormalization"})


def _matmuls_behind(graph: GraphProto, ends: Container[str]) -> tuple[str, ...]:
    """Back from the outputs, every matmul up to the first nodes of the kinds `ends`, those included."""
    producer = {name: node for node in graph.node for name in node.output}
    found: dict[str, None] = {}
    seen: set[str] = set()
    waiting = [output.name for output in graph.output]
    while waiting:
        node = producer.get(waiting.pop())
        if node is None or node.output[0] in seen:
            continue
        seen.add(node.output[0])
        if node.op_type in INTEGER_MATMULS | FLOAT_MATMULS:
            found[node.name] = None
        if node.op_type not in ends:
            waiting.extend(node.input)
    return tuple(found)


def split_gemms(graph: GraphProto, names: Container[str]) -> None:
    """These Gemm nodes, alpha and beta 1, as a MatMul of the same name and an Add, their weights stored as MatMul takes them."""
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
        made = node.output[0] if unbiased else matmul
        nodes.append(onnx.helper.make_node("MatMul", [node.input[0], weight.name], [made], name=node.name))
        if not unbiased:
            name = f"{node.name}_bias"
            nodes.append(onnx.helper.make_node("Add", [matmul, node.input[2]], [node.output[0]], name=name))
    replace_all(graph.node, nodes)
    drop_unused(graph)


def strip_identities(graph: GraphProto) -> int:
    """Remove Identity nodes, rewiring their readers; returns how many went.

    Quantizers look for an initialiser directly at a matmul's input: ALBERT's shared weights sit behind
    Identity nodes and would stay fp32 without a word. An Identity that feeds a graph output stays.
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
    """Store a weight as its matmuls take it, where all that read it transpose it alike; returns how many nodes went.

    The exporter does so for a large weight only if one node reads it. ALBERT's shared ones would stay behind
    Transpose nodes, which quantizers do not look behind, and be turned around at every run.
    """
    stored = {tensor.name: tensor for tensor in graph.initializer}
    outputs = {value.name for value in graph.output}
    reads: dict[str, set[tuple[int, ...] | None]] = {name: {None} for name in outputs}
    for node in graph.node:
        order = None if node.output[0] in outputs else _turned(node, stored)
        for name in node.input:
            reads.setdefault(name, set()).add(order)
    turned = {name: next(iter(ways)) for name, ways in reads.items() if name in stored and len(ways) == 1}
    folded = {name: order for name, order in turned.items() if order is not None}
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


def _turned(node: NodeProto, stored: Container[str]) -> tuple[int, ...] | None:
    """The order of axes that a Transpose of a stored tensor gives; None for any other node."""
    if node.op_type != "Transpose" or node.input[0] not in stored:
        return None
    return next((tuple(entry.ints) for entry in node.attribute if entry.name == "perm"), None)


def merge_duplicates(graph: GraphProto) -> int:
    """Store equal initialisers once; returns how many went."""
    first: dict[bytes, str] = {}
    source: dict[str, str] = {}
    for tensor in graph.initializer:
        name = first.setdefault(_content(tensor), tensor.name)
        if name != tensor.name:
            source[tensor.name] = name
    for node in graph.node:
        node.input[:] = [source.get(name, name) for name in node.input]
    _keep(graph, set(first.values()))
    return len(source)


def drop_unused(graph: GraphProto) -> None:
    """Initialisers that no node reads."""
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    _keep(graph, read)


def _keep(graph: GraphProto, names: Container[str]) -> None:
    """Of the initialisers those of `names`, where they lie: a list of them would be copied, weights and all."""
    for place in reversed(range(len(graph.initializer))):
        if graph.initializer[place].name not in names:
            del graph.initializer[place]


def drop_dead(graph: GraphProto) -> None:
    """Nodes that no output depends on."""
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


def set_metadata(model: ModelProto, values: dict[str, str]) -> None:
    """Replace the model's metadata, sorted by key."""
    del model.metadata_props[:]
    for key in sorted(values):
        model.metadata_props.add(key=key, value=values[key])


def get_metadata(model: ModelProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props}


def check_model(path: Path) -> None:
    """onnx.checker with shape inference, on the absolute path: types, shapes, path escapes. CheckFailed."""
    try:
        onnx.checker.check_model(str(Path(path).resolve()), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise CheckFailed(f"{path}: the ONNX checker refuses it: {' '.join(str(error).split())}") from None


def write_model(model: ModelProto, path: Path) -> None:
    """One file, the same bytes for the same model, whole or absent; in the oldest IR version that has its opsets. The model
    is given that version and its producer's name."""
    model.producer_name, model.producer_version = PRODUCER, __version__
    model.ir_version = onnx.helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    try:
        content = model.SerializeToString(deterministic=True)
    except EncodeError:  # protobuf's limit
        raise CompressError(f"{path}: expected a model below 2 GiB; use a smaller teacher") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, content)
