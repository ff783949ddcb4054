"""A run's student: its card, and the checkpoint that it starts from if that is not its teacher's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...catalog import is_path, names
from ...errors import CompressError, with_article
from ...files.paths import expand_home
from ...losses.loss import LossSpec
from ...models.cards import StudentCard, load_student
from ...models.dimensions import Dimensions
from ...models.families import FAMILIES
from ...models.layer_maps import check_losses
from ...models.students import PRETRAINED, check_has_students, student_dimensions
from ...spec.recipe import Recipe
from ...spec.stages import Losses, QuantizeAware
from .job import Inputs
from .plan import Plan
from .teachers import TeacherSource, checkpoint_source, resolve_teacher


def resolve_student(name_or_path: str) -> tuple[StudentCard, TeacherSource | None]:
    """Resolve a card's name or file; or a checkpoint, by its folder or as OWNER/NAME[@REVISION] of the hub, for a pre-trained student.
    Raises `CompressError` if there is none."""
    source = checkpoint_source(name_or_path, "student")
    if source is not None:
        card = source.card
        return StudentCard(name=card.name, title=card.title, init="pretrained", checkpoint=name_or_path), source
    student = load_student(name_or_path)
    if student.checkpoint is None:
        return student, None
    base = expand_home(name_or_path).parent if is_path(name_or_path) else Path()
    return student, _checkpoint_of(student, student.checkpoint, base)


def _checkpoint_of(student: StudentCard, word: str, base: Path) -> TeacherSource:
    """Resolve the checkpoint that a card names, relative to the card's file or to the working directory."""
    beside = base / expand_home(word)
    try:
        source = resolve_teacher(str(beside.absolute()) if is_path(word) and beside.is_dir() else word)
        if source.folder is None:
            raise CompressError(f"{word} has random weights; name a card with a checkpoint, or a folder")
    except CompressError as error:
        raise CompressError(f"student {student.name}: checkpoint: {error}") from None
    return source


CHOSEN_LAYERS = "layer_importance"  # the node that chooses which layers a student is copied from, and the input role of its artefact


def card_of(plan: Plan, inputs: Inputs) -> StudentCard:
    """Return the card of the student that a stage starts; if the run chose the layers to copy, the card names them."""
    card = plan.student
    if card is None:
        raise RuntimeError("a stage that trains a student is only planned with one")
    if card.init != "prune":
        return card
    return card.model_copy(update={"init": "copy", "copy_layers": tuple(inputs[CHOSEN_LAYERS].info["copied_layers"])})


def copied_note(recipe: Recipe, card: StudentCard, teacher: TeacherSource, layers: int) -> tuple[str, ...]:
    """Return a note if the recipe takes a pre-trained student for some teachers, and `card` copies layers of this teacher, which has
    `layers`."""
    choice = recipe.student if isinstance(recipe.student, dict) else {}
    named = next((name for name in choice.values() if (own := _card(name)) and own.init == "pretrained"), None)
    if named is None or card.init not in ("copy", "prune"):
        return ()
    such = f", such as {named}" if named != teacher.card.name else ""
    return (
        f"student {card.name}: for a teacher of {layers} layers it starts from copied layers, not from a "
        f"pre-trained encoder; give one with --student DIR or --student CARD{such}",
    )


def _card(name: str) -> StudentCard | None:
    """Return the card; None if it cannot be read, which is reported when a run uses it."""
    try:
        return load_student(name)
    except CompressError:
        return None


def check_family(recipe: Recipe, teacher: Dimensions) -> None:
    """Raise `CompressError` if no card of the recipe is for the teacher's family, or if its losses are not, at any depth."""
    where, own = f"recipe {recipe.name}", FAMILIES[teacher.architecture]
    cards = _cards(recipe, teacher)
    if cards and all(_is_layerless(card) for card in cards):
        return
    check_has_students(teacher, where)
    titles = {FAMILIES[card.architecture].title for card in cards if isinstance(card.architecture, str)}
    if cards and not any(card.init == "pretrained" or card.architecture in own.student_families for card in cards):
        student_titles, fitting_titles = (
            " or ".join(sorted(titles)),
            ", ".join(FAMILIES[name].title for name in own.student_families),
        )
        raise CompressError(
            f"{where}: its student is of the family {student_titles}, which cannot start from {with_article(own.title)}; "
            f"students of that are {fitting_titles}: choose another recipe, such as distilbert; or {PRETRAINED}"
        )
    for stage, losses in () if own.attention.readable else _losses(recipe):
        check_losses(losses, student=teacher, teacher=teacher, where=f"{where}, stage {stage}")


def _is_layerless(card: StudentCard) -> bool:
    return card.family is not None and card.family.layerless


def _cards(recipe: Recipe, teacher: Dimensions) -> list[StudentCard]:
    """The recipe's own cards, as students of that teacher."""
    choice = recipe.student or {}
    wanted = [choice] if isinstance(choice, str) else list(choice.values())
    return [card.of(teacher.architecture) for card in map(_card, wanted) if card is not None]


def _losses(recipe: Recipe) -> Iterator[tuple[str, Sequence[LossSpec]]]:
    """Stage and losses of each stage whose losses hold for all tasks, except quantization-aware training, whose teacher is the student
    itself."""
    for stage in recipe.stages:
        spec = stage.spec
        if not isinstance(spec, Losses) or isinstance(spec, QuantizeAware) or not stage.is_enabled:
            continue
        if not any("losses" in own for own in getattr(spec, "per_task", {}).values()):
            yield stage.id, spec.losses


_MOST_NAMED = 3


def fitting_students(recipe: Recipe, teacher: Dimensions, *, layers: float, init: str = "copy") -> str:
    """Return the end of a message that refuses a student: the catalogue's cards that this teacher can have in the recipe, nearest to
    `layers` first.

    Only cards with initialization `init` are named, or, if there are none, those that copy layers. A recipe whose own students are all
    ALBERTs names ALBERTs alone. Empty if no card fits.
    """
    if not FAMILIES[teacher.architecture].student_families:
        return ""
    own = {str(card.architecture) for card in _cards(recipe, teacher)}
    cards = [card for card in map(load_student, names("students")) if _fits(recipe, card, teacher)]
    if own == {"albert"}:
        cards = [card for card in cards if card.of(teacher.architecture).architecture == "albert"]
    same = [card for card in cards if card.init == init] or [card for card in cards if card.init == "copy"]
    card_names = [card.name for card in sorted(same, key=lambda card: abs(card.layers - layers))[:_MOST_NAMED]]
    return f"; this teacher can have --student {' or '.join(card_names)}" if card_names else ""


def _fits(recipe: Recipe, card: StudentCard, teacher: Dimensions) -> bool:
    """Whether the card has fewer layers than the teacher (converted cards excepted), and all that the recipe's losses read."""
    if card.init in ("pretrained", "random", "static") or (card.init != "convert" and card.layers >= teacher.layers):
        return False
    try:
        student = student_dimensions(card, teacher)
        for _, losses in _losses(recipe):
            check_losses(losses, student=student, teacher=teacher, where="")
    except CompressError:
        return False
    return True
