"""The tables of recipes: those to begin with in the README, all of them in docs/recipes.md."""

from __future__ import annotations

from compress.catalog import list_cards
from compress.spec.recipe import Recipe

# One of each way to a smaller model.
MAIN = ("int8", "distilbert", "minilm", "tinybert-small", "albert", "logits", "prune-int8", "static")


def main_recipes_table() -> str:
    """A row for each recipe of `MAIN`."""
    recipes = list_cards("recipes", Recipe)
    rows = ["| recipe | what it does | paper |", "|-|-|-|"]
    rows += [f"| `{name}` | {recipes[name].description} | {_paper(recipes[name])} |" for name in MAIN]
    return "\n".join(rows)


def recipe_table() -> str:
    """A row for each recipe of the catalogue."""
    rows = ["| recipe | what it does | stages | paper |", "|-|-|-|-|"]
    for name, recipe in list_cards("recipes", Recipe).items():
        stages = " → ".join(stage.id for stage in recipe.stages)
        rows.append(f"| `{name}` | {recipe.description} | {stages} | {_paper(recipe)} |")
    return "\n".join(rows)


def _paper(recipe: Recipe) -> str:
    number = (recipe.paper or "").removeprefix("arXiv:")
    return f"[{recipe.paper}](https://arxiv.org/abs/{number})"
