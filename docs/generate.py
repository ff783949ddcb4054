"""Write the generated pages, and the marked blocks of pages written by hand.

`python docs/generate.py` writes them; a test makes them in memory and compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from generators.commands import cli_page
from generators.families import family_table
from generators.floors import floors_table
from generators.index_page import index_page
from generators.models import models_table
from generators.recipes import main_recipes_table, recipe_table
from generators.reference import reference_page
from generators.results import results_table

ROOT = Path(__file__).resolve().parent.parent
PAGES: dict[str, Callable[[], str]] = {
    "docs/cli.md": cli_page,
    "docs/reference.md": reference_page,
    "reports/index.html": index_page,  # of three pages, when their blocks are made
}
BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"recipes": main_recipes_table, "results": results_table},
    "docs/architecture.md": {"floors": floors_table},
    "docs/recipes.md": {"families": family_table, "recipes": recipe_table},
    "reports/models.md": {"models": models_table},
}


def with_blocks(page: str, text: str) -> str:
    """The text of a page with each of its marked blocks made anew."""
    for name, make in BLOCKS[page].items():
        pattern = re.compile(rf"(<!-- {name}: docs/generate.py -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, count = pattern.subn(lambda match, make=make: f"{match[1]}{make()}\n{match[2]}", text)
        if count != 1:
            raise SystemExit(f"{page}: expected one block marked {name}, found {count}")
    return text


def main() -> None:
    for page in BLOCKS:
        text = (ROOT / page).read_text(encoding="utf-8")
        (ROOT / page).write_text(with_blocks(page, text), encoding="utf-8")
    for page, make in PAGES.items():
        (ROOT / page).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
