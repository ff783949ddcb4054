"""What a student's form cannot keep of its teacher, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..cards import StudentCard
from ..dimensions import Dimensions
from ..families import FAMILIES

_EPSILON = "layer_norm_eps"  # its BERT name


def layer_norm_epsilon(config: Mapping[str, Any]) -> float | None:
    """Return LayerNorm's epsilon; None if config.json leaves it to transformers."""
    family = FAMILIES[config["model_type"]]
    return family.fixed.get(_EPSILON, config.get(family.own_name(_EPSILON)))


def not_kept(card: StudentCard, sizes: Mapping[str, Dimensions], *, epsilon: float | None = None) -> tuple[str, ...]:
    """Return a line for each thing that is not kept, for a student that starts from its teacher's weights. `sizes`: of `student` and
    `teacher`; `epsilon`: of the teacher's LayerNorm, if known."""
    if card.init in ("random", "static"):
        return ()
    own = FAMILIES[sizes["student"].architecture]
    lines = [*_note_lines(card, sizes["student"], sizes["teacher"])]
    if epsilon is not None and own.fixed.get(_EPSILON, epsilon) != epsilon:
        lines.append(
            f"its LayerNorm adds {own.fixed[_EPSILON]:g} to variances, where the teacher's adds {epsilon:g} ({_EPSILON})"
        )
    return tuple(f"student {card.name}: {line}" for line in lines)


def _note_lines(card: StudentCard, student: Dimensions, teacher: Dimensions) -> Iterator[str]:
    student_family, teacher_family = FAMILIES[student.architecture], FAMILIES[teacher.architecture]
    if teacher.token_types > 1 and not student.token_types:
        yield f"a {student_family.title} has no segment embeddings: the first segment's is added to the positions, the second's is dropped"
    if teacher.task_types and not student.task_types:
        yield (
            f"a {student_family.title} has no task-type embeddings: the first type's, which all texts here have, is "
            "added to the positions"
        )
    if teacher.first_position > student.first_position:
        yield (
            f"positions are counted from 0: the teacher's first {teacher.first_position} rows, which belong to no "
            "token, are left out"
        )
    if teacher.projected and not student.projected:
        yield (
            f"embeddings {teacher.embedding} wide behind a matrix become tables {student.embedding} wide that "
            "approximate them; losses on embeddings and hidden states make up for the rest"
        )
    if card.init == "copy" and teacher.blocks < teacher.layers and student.blocks == student.layers > 1:
        yield f"each layer has weights of its own, where the teacher's {teacher.layers} share {teacher.blocks}"
    if teacher_family.attention.relative_bias and not student_family.attention.relative_bias:
        yield "attention has no values for the distance of two tokens, which the teacher's adds to its scores"
    classifiers = student_family.heads.classifier, teacher_family.heads.classifier
    (_, own), (_, other) = (layers[0] if layers else ("", None) for layers in classifiers)
    if student_family is not teacher_family and own != other and student.classes and not student.per_token:
        yield f"the classifier's first layer is the teacher's with {own} in place of {other}"
