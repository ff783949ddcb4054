"""A run's student: its card, and the checkpoint that it starts from where that is its own and not its teacher's."""

from __future__ import annotations

from pathlib import Path

from ...catalog import is_path, names
from ...errors import CompressError
from ...models.cards import StudentCard, load_student
from ...models.dimensions import Dimensions
from ...models.families import FAMILIES
from ...models.students import student_dimensions
from ...paths import from_home
from ...spec.recipe import Recipe
from .teachers import TeacherSource, checkpoint_source, resolve_teacher


def resolve_student(name_or_path: str) -> tuple[StudentCard, TeacherSource | None]:
    """A card's name or file; or a checkpoint, by its folder or as OWNER/NAME[@REVISION] of the hub, for a pre-trained student.

    Raises `CompressError` where there is none."""
    source = checkpoint_source(name_or_path, "student")
    if source is not None:
        card = source.card
        return StudentCard(name=card.name, title=card.title, init="pretrained", checkpoint=name_or_path), source
    student = load_student(name_or_path)
    if student.checkpoint is None:
        return student, None
    base = Path(name_or_path).parent if is_path(name_or_path) else Path()
    return student, _checkpoint_of(student, student.checkpoint, base)


def _checkpoint_of(student: StudentCard, word: str, base: Path) -> TeacherSource:
    """What a card names, beside the card's file or from where the command runs."""
    beside = base / from_home(word)
    try:
        source = resolve_teacher(str(beside.absolute()) if is_path(word) and beside.is_dir() else word)
        if source.folder is None:
            raise CompressError(f"{word} has random weights; name a card with a checkpoint, or a folder")
    except CompressError as error:
        raise CompressError(f"student {student.name}: checkpoint: {error}") from None
    return source


def copied_note(recipe: Recipe, card: StudentCard, teacher: TeacherSource, layers: int) -> tuple[str, ...]:
    """Of a recipe that takes a pre-trained student for some teachers, and copied layers, by `card`, for one of so many layers."""
    choice = recipe.student if isinstance(recipe.student, dict) else {}
    named = next(filter(_is_pretrained, choice.values()), None)
    if named is None or card.init != "copy":
        return ()
    such = f", such as {named}" if named != teacher.card.name else ""
    return (
        f"student {card.name}: copied layers of the teacher, for one of {layers} layers, and no pre-trained encoder; "
        f"--student DIR or --student CARD takes one{such}",
    )


def _is_pretrained(name: str) -> bool:
    """A card that cannot be read is refused where a run takes it, and not here."""
    try:
        return load_student(name).init == "pretrained"
    except CompressError:
        return False


_MOST_NAMED = 3


def fitting_students(teacher: Dimensions, *, layers: float, init: str = "copy") -> str:
    """How a message ends that refuses a student: the cards of the catalogue that this teacher can have, nearest to `layers` first.

    Of those that start as `init` says; where there are none, of those that copy layers. Nothing where there are none at all.
    """
    if not FAMILIES[teacher.architecture].students:
        return ""
    cards = [card for card in map(load_student, names("students")) if _fits(card, teacher)]
    same = [card for card in cards if card.init == init] or [card for card in cards if card.init == "copy"]
    found = [card.name for card in sorted(same, key=lambda card: abs(card.layers - layers))[:_MOST_NAMED]]
    return f"; this teacher can have --student {' or '.join(found)}" if found else ""


def _fits(card: StudentCard, teacher: Dimensions) -> bool:
    """With fewer layers, but for what shares them."""
    if card.init in ("pretrained", "random") or (card.init != "convert" and card.layers >= teacher.layers):
        return False
    try:
        student_dimensions(card, teacher)
    except CompressError:
        return False
    return True
