"""A student's sizes from its card and its teacher's, with every mistake reported before anything is computed."""

from __future__ import annotations

from dataclasses import replace

from ...errors import CompressError, with_article
from ..cards import StudentCard
from ..dimensions import Dimensions
from ..families import FAMILIES, Family
from ..layer_maps import copied_layers, distinct_blocks
from .activations import FEW_TOKENS
from .static import static_dimensions

PRETRAINED = "a pre-trained student learns from its logits (recipe logits, --student minilm-l6 or DIR)"
_SIZES = ("hidden", "heads", "intermediate")
_SEGMENTS = 2  # of a student whose teacher has none; its tokenizer may mark the second text of a pair
_COUNTED_TOKENS = 200_000  # counted by a conversion, to weight rows of the embedding tables


def sample_tokens(card: StudentCard) -> int:
    """Return how many tokens of text the student's initialisation needs; 0 if none."""
    return {"project": FEW_TOKENS, "convert": _COUNTED_TOKENS}.get(card.init, 0)


def student_dimensions(card: StudentCard, teacher: Dimensions, *, texts: int = 1) -> Dimensions:
    """Return the student's sizes, for a task whose examples have `texts` texts. Raises `CompressError` naming the two things that do not
    fit."""
    card = card.of(teacher.architecture)
    if card.family is not None and card.family.layerless:
        return static_dimensions(card, card.family, teacher, texts=texts)
    family = _family(card, teacher)
    sizes = {name: getattr(card, name) or getattr(teacher, name) for name in _SIZES}
    if sizes["hidden"] % sizes["heads"]:
        raise CompressError(
            f"student {card.name}: hidden is {sizes['hidden']}, which {sizes['heads']} heads do not divide evenly"
        )
    if teacher.pruned is not None and card.init in _CHECKS:
        raise CompressError(
            f"student {card.name}: starts from the teacher's layers, which are pruned ({teacher.pruned}); distil first and prune the "
            "student, or use `init: random`"
        )
    if check := _CHECKS.get(card.init):
        check(card, sizes, teacher)
    before = teacher.first_position if family.embeddings.positions_after_padding else 0
    return replace(
        teacher,
        **sizes,
        architecture=family.name,
        layers=card.layers,
        blocks=_blocks(card, teacher) if family.shares_layers else card.layers,
        embedding=_embedding(card, family, sizes["hidden"], teacher),
        positions=teacher.positions - teacher.first_position + before,
        first_position=before,
        inner_layers=1,
        token_types=_segments(family, teacher),
        own=teacher.own if family.name == teacher.architecture else dict(family.counts.own_sizes),
        pruned=None,
    )


def _segments(family: Family, teacher: Dimensions) -> int:
    if family.name == teacher.architecture:
        return teacher.token_types
    return (teacher.token_types or _SEGMENTS) if "type_vocab_size" in family.fields else 0


def _family(card: StudentCard, teacher: Dimensions) -> Family:
    """Return the student's family. Raises `CompressError` for one that this teacher cannot have."""
    check_has_students(teacher, f"student {card.name}")
    own = FAMILIES[teacher.architecture]
    family = card.family or own
    if family.name not in own.student_families:
        raise _not_its_student(card, family, own)
    if problem := card.start_problem(family):
        raise CompressError(f"student {card.name}: {problem}")
    if card.init == "convert" and own.shares_layers:
        raise CompressError(
            f"student {card.name} is converted to ALBERT's form, which the teacher already has; choose one that "
            "repeats its layers less often, or a card of fewer layers without `architecture`, `init` and `albert`"
        )
    if family.shares_layers and card.albert is None and not own.shares_layers:
        raise CompressError(
            f"student {card.name}: an ALBERT of a {own.name} needs `init: convert` or `init: random`, and `albert`"
        )
    return family


def check_has_students(teacher: Dimensions, where: str) -> None:
    """Raise `CompressError`, starting with `where`, for a teacher whose weights no student can start from."""
    if not FAMILIES[teacher.architecture].student_families:
        raise CompressError(
            f"{where}: no student can start from the weights of a teacher that is {teacher.architecture}; {PRETRAINED}"
        )


def _not_its_student(card: StudentCard, family: Family, own: Family) -> CompressError:
    teachers = [name for name, other in FAMILIES.items() if family.name in other.student_families]
    students = ", ".join(FAMILIES[name].title for name in own.student_families)
    other = "" if own.layers.parts else f"; or {PRETRAINED}"
    starts = f", which starts from {' or '.join(teachers)}" if teachers else ""
    return CompressError(
        f"student {card.name} is {with_article(family.title)}{starts}; "
        f"the teacher is {own.name}, whose students are {students}: choose another with --student, or leave `architecture` "
        f"out of the card{other}"
    )


def _blocks(card: StudentCard, teacher: Dimensions) -> int:
    """Return how many layers of an ALBERT have weights of their own."""
    if card.albert is not None:
        return card.albert.groups if card.albert.share == "all" else card.layers
    if card.init == "copy":
        return len(distinct_blocks(card.copy_layers, teacher, layers=card.layers, card=card.name))
    return teacher.blocks if card.layers % teacher.blocks == 0 else 1


def _embedding(card: StudentCard, family: Family, hidden: int, teacher: Dimensions) -> int:
    if card.albert is not None:
        return card.albert.embedding
    if "embedding_size" not in family.fields:
        return hidden
    return teacher.embedding if card.init in ("copy", "prune") else min(teacher.embedding, hidden)


def _check_same(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    for name, wanted in sizes.items():
        if wanted != getattr(teacher, name):
            rule = "copied layers need the teacher's sizes; choose another with --student"
            own = card.family is None or card.family.name == teacher.architecture
            if own and card.init == "copy" and name in ("hidden", "intermediate") and wanted < getattr(teacher, name):
                rule += ", or give the card `init: project`"
            raise _misfit(card, name, wanted, teacher, rule)


def _check_chosen(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    """Check a student whose layers the run chooses."""
    _check_same(card, sizes, teacher)
    family = FAMILIES[teacher.architecture]
    if family.shares_layers:
        raise CompressError(
            f"student {card.name}: init: prune: the teacher is {with_article(family.title)}, whose layers share "
            "weights, so none can be dropped on its own; choose a student of `init: copy`"
        )
    copied_layers("first", teacher_layers=teacher.layers, student_layers=card.layers, card=card.name)


def _check_copied(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    _check_same(card, sizes, teacher)
    layers = copied_layers(card.copy_layers, teacher_layers=teacher.layers, student_layers=card.layers, card=card.name)
    if FAMILIES[teacher.architecture].layers.first_differs and (layers[0] != 0 or 0 in layers[1:]):
        raise CompressError(
            f"student {card.name}: its layers would start from {list(layers)} of the teacher; the first layer of a "
            f"{teacher.architecture} has no norm before its attention, unlike the rest: list 0 first, and once, in copy_layers"
        )


def _misfit(card: StudentCard, name: str, wanted: int, teacher: Dimensions, rule: str) -> CompressError:
    difference = f"{name} is {wanted} and the teacher's is {getattr(teacher, name)}"
    return CompressError(f"student {card.name}: {difference}; {rule}")


def _check_projected(card: StudentCard, sizes: dict[str, int], teacher: Dimensions) -> None:
    if card.architecture != teacher.architecture:
        raise CompressError(
            f"student {card.name}: a projected student is of the teacher's family, {teacher.architecture}; leave `architecture` out "
            "of the card, or use `init: random`"
        )
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
            rule = "a converted student keeps the teacher's sizes except that of its embeddings"
            raise _misfit(card, name, wanted, teacher, f"{rule}; leave it out, or use `init: random`")
    if card.layers > teacher.layers:
        raise CompressError(
            f"student {card.name} has {card.layers} layers and the teacher {teacher.layers}: a block cannot "
            "replace less than a layer; choose a shallower card, or `init: random`"
        )
    if card.albert is None:
        return
    if card.albert.embedding > teacher.embedding:
        whose = "the teacher's hidden size" if teacher.embedding == teacher.hidden else "that of the teacher's tables"
        raise CompressError(
            f"student {card.name}: albert.embedding is {card.albert.embedding} and {whose} {teacher.embedding}; "
            "embeddings can become narrower, not wider"
        )
    if isinstance(card.albert.block, tuple) and max(card.albert.block) >= teacher.layers:
        raise CompressError(
            f"student {card.name}: albert.block names layer {max(card.albert.block)} and the teacher's last is {teacher.layers - 1}"
        )


# Random weights need no check.
_CHECKS = {
    "copy": _check_copied,
    "prune": _check_chosen,
    "project": _check_projected,
    "convert": _check_converted,
}
