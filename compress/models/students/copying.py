"""Copy weights into a student: a teacher's of its width, whatever their families call the parts, or a trained encoder's.

Where the student has no segments, the row of the teacher's first is folded into the positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from ..families import Family
from ..weights import load_weights

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
    if student.relative_bias and teacher.relative_bias:
        name = f"{student.relative_bias}.weight"
        state[name] = source[f"{teacher.relative_bias}.weight"]
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


def load_body(student: Any, folder: Path, *, pooler: bool = False) -> None:
    """Put the embeddings and layers of the encoder checkpoint `folder` into `student`, a classifier.

    The classifier stays as it is, and so does the pooler, unless `pooler` says that the encoder's was trained: no
    loss on hidden states trains one.
    Raises `CompressError` for an encoder of another architecture or of other sizes.
    """
    found, wanted = _read(folder, student.base_model_prefix), _once(student.base_model.state_dict())
    if not pooler:
        found, wanted = _without_pooler(found), _without_pooler(wanted)
    for name in sorted(wanted.keys() | found.keys()):
        sides = [tuple(state[name].shape) if name in state else "none" for state in (wanted, found)]
        if sides[0] != sides[1]:
            raise CompressError(
                f"{folder}: not an encoder of this student's sizes: {name}: expected {sides[0]}, found {sides[1]}"
            )
    student.base_model.load_state_dict(found, strict=False)


def _read(folder: Path, prefix: str) -> dict[str, Tensor]:
    """The weights of a checkpoint of an encoder, or of the encoder inside one of a model with a head."""
    state = load_weights(folder)
    inside = {name.removeprefix(f"{prefix}."): state[name] for name in state if name.startswith(f"{prefix}.")}
    return inside or state


def _without_pooler(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state.items() if not name.startswith("pooler.")}


def _once(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """What layers share under its first name alone, as checkpoints hold it."""
    first: dict[int, str] = {}
    return {name: tensor for name, tensor in state.items() if first.setdefault(tensor.data_ptr(), name) == name}
