"""Choose which matmuls of an fp32 graph become int8, and how: a plan that an int8 format carries out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from onnx import ModelProto

from ..errors import CompressError
from ..graphs.matmuls import head_matmuls, matmuls, output_matmuls, stored_weight
from ..graphs.rewriting import split_gemms
from ..models.families import FAMILIES
from .weights import is_long

_FEW = 16  # rows of a table worth int8
_POSITIONS = "position_embeddings"  # in the name of their table, in every family that has one
_ADDED_TO_SCORES = tuple(f"{table}.weight" for family in FAMILIES.values() if (table := family.attention.relative_bias))


@dataclass(frozen=True)
class QuantizationPlan:
    """Names of nodes. `int8`: multiplied in integers. `weight_only`: int8 weight, fp32 matmul: the head, next to the logits,
    and weights with a matrix per attention head. `kept`: fp32. `tables`: look-ups that become int8."""

    int8: tuple[str, ...]
    weight_only: tuple[str, ...]
    kept: tuple[str, ...]
    tables: tuple[str, ...]


def select_nodes(model: ModelProto, exclude: tuple[str, ...], *, embeddings: bool, source: Path) -> QuantizationPlan:
    """Plan int8 for all matmuls but the classifier's, and for tables if `embeddings`, except those that `exclude` names.

    Splits the chosen Gemms in place. CompressError: a pattern matches nothing, or nothing is left to be int8: no matmul or,
    in a graph without matmuls, no table.
    """
    graph = model.graph
    matmul_names, head, classifier = matmuls(graph), head_matmuls(graph), output_matmuls(graph)
    excluded = _excluded_nodes(model, exclude, source)
    kept = [name for name in matmul_names.fp32 + matmul_names.stacked if name in excluded or name in classifier]
    split_gemms(graph, {name for name in matmul_names.fp32 if name not in kept})
    weight_only = [name for name in head if name in matmul_names.fp32 and name not in kept]
    weight_only += [name for name in matmul_names.stacked if name not in kept]
    chosen = {*kept, *weight_only}
    int8 = tuple(name for name in matmul_names.fp32 if name not in chosen)
    tables = tuple(name for name in worth_int8(model) if embeddings and name not in excluded)
    has_matmuls = bool(matmul_names.fp32 or matmul_names.stacked)
    if not int8 and (has_matmuls or not tables):
        wanted = "matmuls by stored weights" if has_matmuls else "tables, as it has no matmuls,"
        why = f"`exclude: [{', '.join(exclude)}]` leaves none" if exclude else "it has none"
        why = why if embeddings or has_matmuls else "`embeddings: false` leaves none"
        raise CompressError(f"{source}: expected {wanted} to be int8; {why}")
    return QuantizationPlan(
        int8=int8,
        weight_only=tuple(weight_only),
        kept=tuple(kept),
        tables=tables,
    )


def without_matmuls(plan: QuantizationPlan, names: Sequence[str]) -> QuantizationPlan:
    """`plan` with these int8 matmuls in fp32."""
    return replace(plan, int8=tuple(name for name in plan.int8 if name not in names), kept=(*plan.kept, *names))


def weights_alone(model: ModelProto, plan: QuantizationPlan) -> frozenset[str]:
    """Return the initialisers that are stored as int8 but multiplied in fp32."""
    named = set(plan.weight_only)
    roots = (stored_weight(model.graph, node) for node in model.graph.node if node.name in named)
    return frozenset(root for root in roots if root is not None)


def worth_int8(model: ModelProto) -> list[str]:
    """Return the look-ups of tables of `_FEW` rows or more. For smaller ones, such as the segments', int8 would save a few
    kilobytes and add operators; so would tables of values that are added to attention scores, which are left out too."""
    rows = {tensor.name: tensor.dims[0] for tensor in model.graph.initializer if tensor.dims}
    rows |= dict.fromkeys((name for name in rows if name.endswith(_ADDED_TO_SCORES)), 0)
    named = set(look_ups(model))
    return [node.name for node in model.graph.node if node.name in named and rows[node.input[0]] >= _FEW]


def word_look_ups(model: ModelProto, plan: QuantizationPlan) -> list[str]:
    """Return the plan's look-ups of the word table, if that is long: the table with the most rows, apart from positions, of
    which there may be more."""
    rows = {tensor.name: tensor.dims[0] for tensor in model.graph.initializer if tensor.dims}
    named = set(plan.tables)
    looked_up = [node for node in model.graph.node if node.name in named and node.op_type == "Gather"]
    read = {node.name: node.input[0] for node in looked_up if _POSITIONS not in node.input[0]}
    words = max(read.values(), key=rows.__getitem__, default=None)
    return [name for name, table in read.items() if table == words and is_long(rows[table])]


_FP32 = (onnx.TensorProto.FLOAT,)
INT8 = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)


def look_ups(model: ModelProto, kinds: tuple[int, ...] = _FP32) -> list[str]:
    """Return the nodes that take rows of a constant table of such a type, by index (Gather) or from the start (Slice): the
    embeddings, but not the scales of their rows."""
    stored = [tensor for tensor in model.graph.initializer if tensor.data_type in kinds and len(tensor.dims) == 2]
    tables = {tensor.name for tensor in stored if tensor.dims[1] > 1}
    return [node.name for node in model.graph.node if node.op_type in ("Gather", "Slice") and node.input[0] in tables]


def packed_look_ups(model: ModelProto) -> list[str]:
    """Return the nodes that take rows of a 4-bit table, stored as bytes [row, block, byte]."""
    stored = [tensor for tensor in model.graph.initializer if tensor.data_type in INT8 and len(tensor.dims) == 3]
    tables = {tensor.name for tensor in stored if tensor.dims[2] > 1}
    return [node.name for node in model.graph.node if node.op_type == "Gather" and node.input[0] in tables]


def _excluded_nodes(model: ModelProto, patterns: tuple[str, ...], source: Path) -> set[str]:
    """Nodes whose name a pattern matches anywhere (re.search), among those that could become int8."""
    matmul_names = matmuls(model.graph)
    candidates = [*matmul_names.fp32, *matmul_names.stacked, *look_ups(model)]
    excluded: set[str] = set()
    for pattern in patterns:
        matches = [name for name in candidates if re.search(pattern, name)]
        if not matches:
            raise CompressError(
                f"quantize.exclude: {pattern!r} matches no weight matmul or embedding of {source}; "
                f"they are named like {candidates[-1]!r} and {candidates[0]!r}"
            )
        excluded.update(matches)
    return excluded
