"""A student's sizes out of its card and its teacher's, with every mistake told before anything is computed."""

from __future__ import annotations

from dataclasses import replace

from ...errors import CompressError
from ..cards import StudentCard
from ..dimensions import Dimensions
from ..families import FAMILIES
from ..layer_maps import copied_layers
from .activations import FEW_TOKENS

_SIZES = ("hidden", "heads", "intermediate")
_COUNTED_TOKENS = 200_000  # that a conversion counts, to weigh the rows of the embedding tables


def sample_tokens(card: StudentCard) -> int:
    """How many tokens of text the student's start is computed from; 0 where it needs none."""
    return {"project": FEW_TOKENS, "convert": _COUNTED_TOKENS}.get(card.init, 0)


def student_dimensions(card: StudentCard, teacher: Dimensions) -> Dimensions:
    """The student's sizes. Raises `CompressError` naming the two things that do not fit."""
    family = FAMILIES[card.architecture]
    if family.name not in FAMILIES[teacher.architecture].students:
        teachers = [name for name, other in FAMILIES.items() if family.name in other.students]
        title = family.name if family.student is None else family.student.title
        raise CompressError(
            f"student {card.name} is a {title}, which starts from {' or '.join(teachers)}; "
            f"the teacher is {teacher.architecture}"
        )
    sizes = {name: getattr(card, name) or getattr(teacher, name) for name in _SIZES}
    if sizes["hidden"] % sizes["heads"]:
        raise CompressError(
            f"student {card.name}: hidden is {sizes['hidden']}, which {sizes['heads']} heads do not divide evenly"
        )
    if check := _CHECKS.get(card.init):
        check(card, sizes, teacher)
    return replace(
        teacher,
        **sizes,
        architecture=card.architecture,
        layers=card.layers,
        blocks=card.albert.groups if card.albert and card.albert.share == "all" else card.layers,
        embedding=card.albert.embedding if card.albert else sizes["hidden"],
        token_types=teacher.token_types if "type_vocab_size" in family.fields else 0,
    )


def _check_copied(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    for name, wanted in sizes.items():
        if wanted != getattr(teacher, name):
            raise _misfit(card, name, wanted, teacher, "copied layers need the teacher's sizes")
    copied_layers(card.copy_layers, teacher_layers=teacher.layers, student_layers=card.layers, card=card.name)


def _misfit(card: StudentCard, name: str, wanted: int, teacher: Dimensions, rule: str) -> CompressError:
    found = f"{name} is {wanted} and the teacher's is {getattr(teacher, name)}"
    return CompressError(f"student {card.name}: {found}; {rule}")


def _check_projected(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    if sizes["heads"] != teacher.heads:
        rule = "a projected student keeps the teacher's heads; choose another card, or `init: random`"
        raise _misfit(card, "heads", sizes["heads"], teacher, rule)
    for name in ("hidden", "intermediate"):
        if sizes[name] > getattr(teacher, name):
            raise _misfit(card, name, sizes[name], teacher, "a projected student is no wider than its teacher")
    copied_layers(card.copy_layers, teacher_layers=teacher.layers, student_layers=card.layers, card=card.name)


def _check_converted(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    for name, wanted in sizes.items():
        if wanted != getattr(teacher, name):
            rule = "a converted student keeps the teacher's sizes but for its embeddings"
            raise _misfit(card, name, wanted, teacher, f"{rule}; leave it out, or use `init: random`")
    if card.layers > teacher.layers:
        raise CompressError(
            f"student {card.name} has {card.layers} layers and the teacher {teacher.layers}: "
            "a block cannot stand for less than a layer; choose a shallower card, or `init: random`"
        )
    if card.albert is None:
        return
    if card.albert.embedding > teacher.hidden:
        raise CompressError(
            f"student {card.name}: albert.embedding is {card.albert.embedding} and the teacher's hidden size "
            f"{teacher.hidden}; embeddings are taken to a smaller size, not to a larger one"
        )
    if isinstance(card.albert.block, tuple) and max(card.albert.block) >= teacher.layers:
        raise CompressError(
            f"student {card.name}: albert.block names layer {max(card.albert.block)} and the teacher's last is {teacher.layers - 1}"
        )


_CHECKS = {
    "copy": _check_copied,
    "project": _check_projected,
    "convert": _check_converted,
}  # of random weights any will do
