"""Copy a teacher's weights into a student of its width, whatever their families call the parts.

Where the student has no segments, the row of the first is folded into the positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..families import Family

if TYPE_CHECKING:
    from torch import Tensor

State = dict[str, "Tensor"]

_KINDS = ("weight", "bias")
_ENCODER = "base_model."


def copied_body(source: State, teacher: Family, student: Family, layers: Sequence[int]) -> State:
    """State of the student's encoder out of that of the teacher's, with student layer i from teacher layer `layers[i]`."""
    state = _embeddings(source, teacher, student)
    for mine, theirs in enumerate(layers):
        for part, path in student.layer.items():
            target = f"{student.layer_path.format(mine)}.{path}"
            state |= _module(source, f"{teacher.layer_path.format(theirs)}.{teacher.layer[part]}", target)
    if student.pooler and teacher.pooler and f"{teacher.pooler}.weight" in source:
        state |= _module(source, teacher.pooler, student.pooler)
    return state


def copied_head(source: State, teacher: Family, student: Family, *, prefix: str) -> State:
    """State of the student's head beside its encoder out of that of the teacher's classifier, whose encoder is at `prefix`."""
    state: State = {}
    for (mine, _), (theirs, _) in zip(student.head, teacher.head, strict=True):
        if not mine.startswith(_ENCODER):
            state |= _module(source, theirs.replace(_ENCODER, f"{prefix}."), mine)
    return state


def _embeddings(source: State, teacher: Family, student: Family) -> State:
    names = ["word_embeddings.weight", "position_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias"]
    segments = "token_type_embeddings.weight"
    if "type_vocab_size" in student.fields:
        names.append(segments)
    state = {f"embeddings.{name}": source[f"embeddings.{name}"] for name in names}
    if "type_vocab_size" in teacher.fields and "type_vocab_size" not in student.fields:
        state["embeddings.position_embeddings.weight"] = (
            state["embeddings.position_embeddings.weight"] + source[f"embeddings.{segments}"][0]
        )
    return state


def _module(source: State, theirs: str, mine: str) -> State:
    return {f"{mine}.{kind}": source[f"{theirs}.{kind}"] for kind in _KINDS}
