"""A student's sizes out of its card and its teacher's, with every mistake told before anything is computed."""

from __future__ import annotations

from dataclasses import replace

from ...errors import CompressError
from ...spec.cards import StudentCard
from ..dimensions import Dimensions
from ..layers import copied_layers
from .table import STUDENTS

_SIZES = ("hidden", "heads", "intermediate")


def needs_sample(card: StudentCard) -> bool:
    """Whether the student's start is computed from the teacher's activations on some text."""
    return card.init == "project"


def student_dimensions(card: StudentCard, teacher: Dimensions) -> Dimensions:
    """The student's sizes. Raises `CompressError` naming the two things that do not fit."""
    form = STUDENTS[card.architecture]
    if teacher.architecture not in form.teachers:
        raise CompressError(
            f"student {card.name} is a {form.title}, which starts from {' or '.join(form.teachers)}; "
            f"the teacher is {teacher.architecture}"
        )
    sizes = {name: getattr(card, name) or getattr(teacher, name) for name in _SIZES}
    if sizes["hidden"] % sizes["heads"]:
        raise CompressError(
            f"student {card.name}: hidden is {sizes['hidden']}, which {sizes['heads']} heads do not divide evenly"
        )
    _CHECKS[card.init](card, sizes, teacher)
    return replace(
        teacher,
        **sizes,
        architecture=card.architecture,
        layers=card.layers,
        distinct_layers=card.layers,
        embedding=sizes["hidden"],
        token_types=teacher.token_types if form.token_types else 0,
        pooled=True,
    )


def _check_copied(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    for name, wanted in sizes.items():
        if wanted != getattr(teacher, name):
            raise CompressError(
                f"student {card.name}: {name} is {wanted} and the teacher's is {getattr(teacher, name)}; "
                "copied layers need the teacher's sizes"
            )
    copied_layers(card.copy_layers, teacher_layers=teacher.layers, student_layers=card.layers, card=card.name)


def _check_projected(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    if sizes["heads"] != teacher.heads:
        raise CompressError(
            f"student {card.name}: heads is {sizes['heads']} and the teacher's is {teacher.heads}; "
            "a projected student keeps the teacher's heads; choose another card, or `init: random`"
        )
    for name in ("hidden", "intermediate"):
        if sizes[name] > getattr(teacher, name):
            raise CompressError(
                f"student {card.name}: {name} is {sizes[name]} and the teacher's is {getattr(teacher, name)}; "
                "a projected student is no wider than its teacher"
            )
    copied_layers(card.copy_layers, teacher_layers=teacher.layers, student_layers=card.layers, card=card.name)


def _check_random(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    """Any sizes will do."""


_CHECKS = {"copy": _check_copied, "random": _check_random, "project": _check_projected}
