"""Names say what they hold, and files and functions stay small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_LINES, MOST_LINES_OF_A_BODY = 300, 50
FITS_ANYTHING = {"asked", "found", "given", "made", "told"}
ROOMS = ("compress", "benchmarks", "docs", "examples", "tests")
ON_FILE = {
    ("compress/results/fidelity.py", "given"),
    ("compress/metrics/tags.py", "given"),
}  # a field of results on record


def sources() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of all that is named here: functions, classes, arguments, variables, attributes and aliases of imports."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def vague(tree: ast.AST) -> list[tuple[int, str]]:
    return [(line, name) for line, name in names(tree) if name.strip("_").lower() in FITS_ANYTHING]


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "for _made in rows: pass",
        "def asked(): pass",
        "def f(*, told): pass",
        "self._given = 1",
        "import json as found",
        "with open(p) as found: pass",
        "[found for found in rows]",
        "lambda found: 1",
        "(found := 1)",
    ],
)
def test_a_vague_name_is_seen_wherever_it_is_given(source: str) -> None:
    assert vague(ast.parse(source))


def test_compounds_and_uses_are_no_vague_names() -> None:
    assert not vague(ast.parse("made_by = rows.found\nprint(found, given_path)\nf(found=1)"))


def test_no_name_fits_just_any_value() -> None:
    vague_names = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sources()
        for line, name in vague(ast.parse(path.read_text(encoding="utf-8")))
        if (path.relative_to(ROOT).as_posix(), name) not in ON_FILE
    ]
    assert not vague_names, "name each for what it holds:\n" + "\n".join(vague_names)


def test_files_and_functions_stay_small() -> None:
    large = []
    for path in sources():
        text = path.read_text(encoding="utf-8")
        if (lines := len(text.splitlines())) > MOST_LINES:
            large.append(f"{path.relative_to(ROOT)}: {lines} lines, at most {MOST_LINES}")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body and (lines := (body[-1].end_lineno or 0) - body[0].lineno + 1) > MOST_LINES_OF_A_BODY:
                    large.append(
                        f"{path.relative_to(ROOT)}:{node.lineno}: the body of {node.name} has {lines} lines, at most {MOST_LINES_OF_A_BODY}"
                    )
    assert not large, "split these by theme:\n" + "\n".join(large)
