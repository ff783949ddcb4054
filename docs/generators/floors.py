"""The table of the package's floors in docs/architecture.md: from the test that enforces them, and the parts' docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LISTED = ROOT / "tests" / "test_floors.py"


def floors_table() -> str:
    """A row per part, the top floor first."""
    rows = ["| floor | part | what it holds |", "|-|-|-|"]
    for floor, parts in sorted(_floors().items(), reverse=True):
        rows += [f"| {floor} | `{part}` | {_summary(part)} |" for part in sorted(parts)]
    return "\n".join(rows)


def _floors() -> dict[int, tuple[str, ...]]:
    for node in ast.parse(LISTED.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FLOORS":
            return ast.literal_eval(node.value)
    raise SystemExit(f"{LISTED}: expected a mapping FLOORS")


def _summary(part: str) -> str:
    """The first paragraph of the part's docstring."""
    package = ROOT / "compress" / part
    file = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split())
