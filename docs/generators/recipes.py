"""The table of recipes in the README."""

from __future__ import annotations

from compress.catalog import list_cards
from compress.spec.recipe import Recipe


def recipe_table() -> str:
    """A row per recipe of the catalogue."""
    rows = ["| recipe | what it does | stages | paper |", "|-|-|-|-|"]
    for name, recipe in list_cards("recipes", Recipe).items():
        stages = " → ".join(stage.id for stage in recipe.stages)
        paper = (recipe.paper or "").removeprefix("arXiv:")
        rows.append(f"| `{name}` | {recipe.description} | {stages} | [{recipe.paper}](https://arxiv.org/abs/{paper}) |")
    return "\n".join(rows)
