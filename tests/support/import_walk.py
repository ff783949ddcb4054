"""The imports of the package, read from its sources: at module level, inside functions, and for types only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "compress"


@dataclass(frozen=True)
class Import:
    """An import of `name`, absolute. `when`: `start`, `call` (inside a function) or `types` (TYPE_CHECKING)."""

    file: str
    line: int
    name: str
    when: str

    @property
    def part(self) -> str | None:
        """The part of the package that is imported, or None for other packages."""
        words = self.name.split(".")
        if words[0] != "compress":
            return None
        return words[1] if len(words) > 1 else "__init__"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name} ({self.when})"


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


@cache
def imports(path: Path) -> tuple[Import, ...]:
    file = path.relative_to(PACKAGE).as_posix()
    package = ["compress", *path.relative_to(PACKAGE).parts[:-1]]
    statements = walk(ast.parse(path.read_text(encoding="utf-8")), "start")
    return tuple(Import(file, node.lineno, name, when) for node, when in statements for name in names(node, package))


def all_imports() -> list[Import]:
    return [each for path in sources() for each in imports(path)]


def walk(node: ast.AST, when: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # which contains no import
            continue
        inside = when
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = "call"
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inside = "types"
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        yield from walk(child, inside)


def names(node: ast.Import | ast.ImportFrom, package: list[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
    return [f"{module}.{alias.name}" for alias in node.names]
