"""Which teacher layers a student starts from."""

from __future__ import annotations

from ..errors import CompressError
from .cards import LayerRule


def copied_layers(rule: LayerRule, *, teacher_layers: int, student_layers: int, card: str) -> tuple[int, ...]:
    """Teacher layer (from 0) for each student layer.

    `every_other` spaces them evenly with both ends included, which for 12 -> 6 gives the
    published [0, 2, 4, 7, 9, 11]. Raises `CompressError` when the rule does not fit the teacher.
    """
    if student_layers > teacher_layers:
        raise CompressError(
            f"student {card} has {student_layers} layers and the teacher {teacher_layers}: "
            "layers cannot be copied into a deeper student; choose a shallower card"
        )
    if rule == "first":
        return tuple(range(student_layers))
    if rule == "last":
        return tuple(range(teacher_layers - student_layers, teacher_layers))
    if rule == "every_other":
        steps = max(student_layers - 1, 1)
        return tuple(round(index * (teacher_layers - 1) / steps) for index in range(student_layers))
    if len(rule) != student_layers:
        raise CompressError(
            f"student {card}: copy_layers lists {len(rule)} layers and the student has {student_layers}; list one for each"
        )
    if max(rule) >= teacher_layers:
        raise CompressError(
            f"student {card}: copy_layers names layer {max(rule)} and the teacher's last is {teacher_layers - 1}"
        )
    return tuple(rule)
