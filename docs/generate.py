"""Write the generated pages: docs/cli.md from --help, and the marked blocks of README.md.

`python docs/generate.py` writes them; a test runs it into memory and compares.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from compress.catalog import list_cards
from compress.report import collect, markdown_table

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ("minilm-sst2", "minilm-mrpc")


def cli_page() -> str:
    """Every command with its options, as the help gives them."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "cli.md"
        command = [
            sys.executable,
            "-m",
            "typer",
            "compress.cli",
            "utils",
            "docs",
            "--name",
            "compress",
            "--output",
            str(page),
        ]
        subprocess.run(command, check=True, capture_output=True)
        return html.unescape(page.read_text(encoding="utf-8"))  # typer escapes what stands between backticks, too


def recipe_table() -> str:
    """A row per recipe of the catalogue."""
    rows = ["| recipe | what it does | stages | paper |", "|-|-|-|-|"]
    for name, recipe in list_cards("recipes").items():
        stages = " → ".join(stage.id for stage in recipe.stages)
        paper = (recipe.paper or "").removeprefix("arXiv:")
        rows.append(f"| `{name}` | {recipe.description} | {stages} | [{recipe.paper}](https://arxiv.org/abs/{paper}) |")
    return "\n".join(rows)


def results_table() -> str:
    """The committed results, as their reports show them."""
    return markdown_table(collect([ROOT / "reports" / name for name in REPORTS]))


BLOCKS = {"recipes": recipe_table, "results": results_table}


def readme(text: str) -> str:
    """README.md with every marked block written anew."""
    for name, make in BLOCKS.items():
        pattern = re.compile(rf"(<!-- {name}: docs/generate.py -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        text, found = pattern.subn(lambda match, make=make: f"{match[1]}{make()}{match[2]}", text)
        if found != 1:
            raise SystemExit(f"README.md: expected one block marked {name}, found {found}")
    return text


def main() -> None:
    (ROOT / "docs" / "cli.md").write_text(cli_page(), encoding="utf-8")
    page = ROOT / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
