"""Copy weights into a student: from a teacher of its width, whatever the names of its family's parts, or from a trained encoder.

What the student's form lacks is merged where it has the same effect, if possible: the teacher's rows for the first segment and task type
into the positions; unused first positions are dropped; embeddings with a projection become tables of the full width (`widening`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from ..checkpoints.weights import load_weights
from ..dimensions import Dimensions
from ..families import Family
from ..families.parts import HeadLayers
from ..heads import head_of
from .widening import widen_tables

if TYPE_CHECKING:
    from torch import Tensor

State = dict[str, "Tensor"]

_KINDS = ("weight", "bias")
_NORM = ("LayerNorm.weight", "LayerNorm.bias")
_WORDS, _POSITIONS, _SEGMENTS = (f"{name}_embeddings.weight" for name in ("word", "position", "token_type"))
_TASKS = "task_type_embeddings.weight"
_ENCODER = "base_model."


@dataclass(frozen=True)
class Form:
    """An encoder's family, `sizes`, and LayerNorm epsilon."""

    family: Family
    sizes: Dimensions
    epsilon: float


def copied_body(source: State, teacher: Form, student: Form, blocks: Sequence[int]) -> State:
    """Return the state of the student's encoder from the teacher's, with block i of the student from the teacher's `blocks[i]`. Blocks are
    layers, unless layers share weights."""
    student_layers, teacher_layers = student.family.layers, teacher.family.layers
    if not student_layers.parts:
        return _whole_layers(source, student_layers.path, blocks)
    state = _embeddings(source, teacher, student)
    for number, block in enumerate(blocks):
        for part, path in student_layers.parts.items():
            target = f"{student_layers.path.format(number)}.{path}"
            state |= _module(source, f"{teacher_layers.path.format(block)}.{teacher_layers.parts[part]}", target)
    student_bias, teacher_bias = student.family.attention.relative_bias, teacher.family.attention.relative_bias
    if student_bias and teacher_bias:
        state[f"{student_bias}.weight"] = source[f"{teacher_bias}.weight"]
    student_pooler, teacher_pooler = student.family.heads.pooler, teacher.family.heads.pooler
    if student_pooler and teacher_pooler and f"{teacher_pooler}.weight" in source:
        state |= _module(source, teacher_pooler, student_pooler)
    return state


def _whole_layers(source: State, path: str, blocks: Sequence[int]) -> State:
    """Return the state of a student of its teacher's family: these layers, which lie at `path`, with their new numbers, and everything
    outside the layers."""
    stem = path.format("")
    number = re.compile(re.escape(stem) + r"\d+\.")
    state = {name: tensor for name, tensor in source.items() if not number.match(name)}
    for index, block in enumerate(blocks):
        old, new = f"{stem}{block}.", f"{stem}{index}."
        state |= {new + name.removeprefix(old): tensor for name, tensor in source.items() if name.startswith(old)}
    return state


def copied_head(source: State, teacher: HeadLayers, student: HeadLayers, *, prefixes: tuple[str, str]) -> State:
    """Return the state of the student's head from the teacher's classifier (`Heads.layers`). `prefixes`: of the encoders of teacher and
    student. Parts inside both encoders are left out, as they are copied with the body."""
    if not student:  # the student is of its teacher's family
        return {name: tensor for name, tensor in source.items() if not name.startswith(f"{prefixes[0]}.")}
    state: State = {}
    for (student_path, _), (teacher_path, _) in zip(student, teacher, strict=True):
        if not (student_path.startswith(_ENCODER) and teacher_path.startswith(_ENCODER)):
            prefixed = zip((teacher_path, student_path), prefixes, strict=True)
            state |= _module(source, *(path.replace(_ENCODER, f"{prefix}.") for path, prefix in prefixed))
    return state


def _embeddings(source: State, teacher: Form, student: Form) -> State:
    tables = {name: source[f"embeddings.{name}"] for name in (_WORDS, _POSITIONS, *_NORM)}
    tables[_POSITIONS] = tables[_POSITIONS][teacher.sizes.first_position - student.sizes.first_position :]
    if teacher.sizes.task_types and student.sizes.task_types:
        tables[_TASKS] = source[f"embeddings.{_TASKS}"]
    elif teacher.sizes.task_types:
        tables[_POSITIONS] = tables[_POSITIONS] + source[f"embeddings.{_TASKS}"][0]
    known = "type_vocab_size" in teacher.family.fields
    types = (
        source[f"embeddings.{_SEGMENTS}"]
        if known
        else tables[_WORDS].new_zeros(student.sizes.token_types, tables[_WORDS].shape[1])
    )
    if "type_vocab_size" in student.family.fields:
        tables[_SEGMENTS] = types
    elif known:
        tables[_POSITIONS] = tables[_POSITIONS] + types[0]
    state: State = {}
    student_projection, teacher_projection = student.family.embeddings.projection, teacher.family.embeddings.projection
    if teacher_projection and teacher.sizes.projected:
        if student_projection and student.sizes.projected:
            state = _module(source, teacher_projection, student_projection)
        else:
            matrix, bias = (source[f"{teacher_projection}.{kind}"] for kind in _KINDS)
            tables = widen_tables(tables, matrix, bias, student.epsilon)
    return state | {f"embeddings.{name}": table for name, table in tables.items()}


def _module(source: State, teacher_path: str, student_path: str) -> State:
    return {f"{student_path}.{kind}": source[f"{teacher_path}.{kind}"] for kind in _KINDS}


def load_body(student: Any, folder: Path, *, pooler: bool = False) -> None:
    """Load the embeddings and layers of the encoder checkpoint `folder` into `student`, a classifier.

    The classifier is unchanged, and so is the pooler unless `pooler` says that the encoder's was trained: losses on hidden states do not
    train it. A classifier of tokens has none. Raises `CompressError` for an encoder of another architecture or other sizes.
    """
    source, wanted = _read(folder, student.base_model_prefix), _distinct_tensors(student.base_model.state_dict())
    if not pooler or head_of(student).per_token or head_of(student).bare:
        source, wanted = _without_pooler(source), _without_pooler(wanted)
    for name in sorted(wanted.keys() | source.keys()):
        sides = [tuple(state[name].shape) if name in state else "none" for state in (wanted, source)]
        if sides[0] != sides[1]:
            raise CompressError(
                f"{folder}: not an encoder of this student's sizes: {name}: expected {sides[0]}, found {sides[1]}"
            )
    student.base_model.load_state_dict(source, strict=False)


def _read(folder: Path, prefix: str) -> dict[str, Tensor]:
    """Return the weights of an encoder checkpoint, or of the encoder in a checkpoint with a head."""
    state = load_weights(folder)
    inside = {name.removeprefix(f"{prefix}."): state[name] for name in state if name.startswith(f"{prefix}.")}
    return inside or state


def _without_pooler(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in state.items() if not name.startswith("pooler.")}


def _distinct_tensors(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return shared tensors under their first name only, as in checkpoints."""
    first: dict[int, str] = {}
    return {name: tensor for name, tensor in state.items() if first.setdefault(tensor.data_ptr(), name) == name}
