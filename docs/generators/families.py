"""The table of families and recipes in docs/recipes.md: what a teacher of 12 layers becomes, as the cards and the families say."""

from __future__ import annotations

from compress.catalog import list_cards, load_recipe
from compress.errors import CompressError
from compress.models.cards import load_student
from compress.models.dimensions import Dimensions
from compress.models.families import FAMILIES
from compress.models.layer_maps import check_losses
from compress.models.students import student_dimensions
from compress.spec.recipe import Recipe

LAYERS = 12
NO_STUDENT = "–"


def family_table() -> str:
    """A row per family of teachers, a column per student card that the recipes name for so many layers. Where some of these
    recipes need what the family has not, the others are named."""
    columns = _recipes_by_card()
    heads = [", ".join(f"`{recipe}`" for recipe in recipes) for recipes in columns.values()]
    rows = ["| teacher | " + " | ".join(heads) + " |", "|-" * (len(heads) + 1) + "|"]
    rows += [
        f"| {FAMILIES[name].title} | {' | '.join(_student(*column, name) for column in columns.items())} |"
        for name, family in FAMILIES.items()
        if not family.layerless  # of such a teacher there is no base model of so many layers
    ]
    return "\n".join(rows)


def _recipes_by_card() -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for name, recipe in list_cards("recipes", Recipe).items():
        if isinstance(recipe.student, dict) and LAYERS in recipe.student:
            columns.setdefault(recipe.student[LAYERS], []).append(name)
    return columns


def _student(card: str, recipes: list[str], family: str) -> str:
    student = load_student(card)
    if student.checkpoint is not None:
        return student.title
    try:
        sizes = student_dimensions(student, _base(family))
    except CompressError:
        return NO_STUDENT
    able = [recipe for recipe in recipes if _is_for(load_recipe(recipe), sizes, _base(family))]
    if not able:
        return NO_STUDENT
    named = "" if able == recipes else f" (by {', '.join(f'`{recipe}`' for recipe in able)})"
    return f"{FAMILIES[sizes.architecture].title}, {sizes.layers} × {sizes.hidden}{named}"


def _is_for(recipe: Recipe, student: Dimensions, teacher: Dimensions) -> bool:
    """Whether its losses read what these models give, and its training for int8 knows their graph."""
    fast = FAMILIES[student.architecture].fast_graph
    try:
        for stage in recipe.stages:
            check_losses(getattr(stage.spec, "losses", ()), student=student, teacher=teacher, where=recipe.name)
    except CompressError:
        return False
    return fast or all(stage.kind != "quantize_aware" for stage in recipe.stages)


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
        positions=514 if known.embeddings.positions_after_padding else 512,
        token_types=2 if "type_vocab_size" in known.fields else 0,
        classes=2,
        embedding=128 if known.shares_layers else 768,
        blocks=1 if known.shares_layers else LAYERS,
        first_position=2 if known.embeddings.positions_after_padding else 0,
    )
