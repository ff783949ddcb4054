"""The table of families and recipes in docs/recipes.md: what a teacher of 12 layers becomes, as the cards and the families say."""

from __future__ import annotations

from compress.catalog import list_cards
from compress.errors import CompressError
from compress.models.cards import load_student
from compress.models.dimensions import Dimensions
from compress.models.families import FAMILIES
from compress.models.students import student_dimensions
from compress.spec.recipe import Recipe

LAYERS = 12
NO_STUDENT = "–"


def family_table() -> str:
    """A row per family of teachers, a column per student card that the recipes name for so many layers."""
    columns = _recipes_by_card()
    heads = [", ".join(f"`{recipe}`" for recipe in recipes) for recipes in columns.values()]
    rows = ["| teacher | " + " | ".join(heads) + " |", "|-" * (len(heads) + 1) + "|"]
    rows += [
        f"| {FAMILIES[name].title} | {' | '.join(_student(card, name) for card in columns)} |" for name in FAMILIES
    ]
    return "\n".join(rows)


def _recipes_by_card() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, recipe in list_cards("recipes", Recipe).items():
        if isinstance(recipe.student, dict) and LAYERS in recipe.student:
            found.setdefault(recipe.student[LAYERS], []).append(name)
    return found


def _student(card: str, family: str) -> str:
    student = load_student(card)
    if student.checkpoint is not None:
        return student.title
    try:
        sizes = student_dimensions(student, _base(family))
    except CompressError:
        return NO_STUDENT
    return f"{FAMILIES[sizes.architecture].title}, {sizes.layers} × {sizes.hidden}"


def _base(family: str) -> Dimensions:
    """The base model of a family, but for its vocabulary."""
    known = FAMILIES[family]
    return Dimensions(
        architecture=family,
        layers=LAYERS,
        hidden=768,
        heads=12,
        intermediate=3072,
        vocabulary=30_000,
        positions=514 if known.positions_after_padding else 512,
        token_types=2 if "type_vocab_size" in known.fields else 0,
        classes=2,
        embedding=128 if known.shares_layers else 768,
        blocks=1 if known.shares_layers else LAYERS,
        first_position=2 if known.positions_after_padding else 0,
    )
