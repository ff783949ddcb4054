"""Names say what they hold, and files and functions stay small."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_LINES, MOST_LINES_OF_A_BODY = 300, 50
FITS_ANYTHING = {"asked", "found", "given", "made", "told"}
ROOMS = ("compress", "benchmarks", "docs", "examples", "tests")
NOT_OURS = {".venv", "build", "dist", "runs"}  # what git ignores and may be in a room
ON_FILE = {
    ("compress/results/fidelity.py", "given"),
    ("compress/metrics/tags.py", "given"),
}  # a field of results on record


@cache
def sources() -> dict[str, str]:
    """Map the path of each of our Python files to its text."""
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    names = {path.relative_to(ROOT).as_posix(): path for path in paths}
    return {name: names[name].read_text(encoding="utf-8") for name in names if not NOT_OURS & set(name.split("/"))}


@cache
def complaints() -> tuple[list[tuple[str, int, str]], list[str]]:
    """Return the vague names as (file, line, name), and what is too long. One syntax tree at a time: the trees of all files are so many
    objects that the garbage collector would slow the other tests of the process."""
    names: list[tuple[str, int, str]] = []
    large = []
    for name, text in sources().items():
        nodes = [*ast.walk(ast.parse(text))]
        names += [(name, line, word) for line, word in vague(nodes)]
        large += [f"{name}: {what}" for what in oversize(text, nodes)]
    return names, large


def snippets() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each Python example in the docs."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for code in re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            yield path.relative_to(ROOT).as_posix(), code


def names(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and name of all that is named here: functions, classes, arguments, variables, attributes and aliases of imports."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.MatchMapping(rest=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield getattr(node, "lineno", 0), name


def vague(nodes: Iterable[ast.AST]) -> list[tuple[int, str]]:
    return [(line, name) for line, name in names(nodes) if name.strip("_0123456789").lower() in FITS_ANYTHING]


def oversize(text: str, nodes: Iterable[ast.AST]) -> list[str]:
    """Return what is too long: the file, and functions, whose signatures and docstrings do not count."""
    lines = len(text.splitlines())
    large = [f"{lines} lines, at most {MOST_LINES}"] if lines > MOST_LINES else []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > MOST_LINES_OF_A_BODY:
                large.append(
                    f"{node.lineno}: the body of {node.name} has {lines} lines, at most {MOST_LINES_OF_A_BODY}"
                )
    return large


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "FOUND2 = 1",
        "for _made in rows: pass",
        "def asked(): pass",
        "async def asked(): pass",
        "class Found: pass",
        "def f(*, told): pass",
        "self._given = 1",
        "import json as found",
        "with open(p) as found: pass",
        "[found for found in rows]",
        "lambda found: 1",
        "(found := 1)",
        "try: pass\nexcept OSError as found: pass",
        "match x:\n  case [1, *found]: pass",
        "match x:\n  case {1: 2, **found}: pass",
        "match x:\n  case found: pass",
    ],
)
def test_a_vague_name_is_seen_wherever_it_is_given(source: str) -> None:
    assert vague(ast.walk(ast.parse(source)))


def test_compounds_and_uses_are_no_vague_names() -> None:
    assert not vague(ast.walk(ast.parse("made_by = rows.found\nprint(found, given_path)\nf(found=1)")))


def test_what_is_too_long_is_seen() -> None:
    def sizes(body: int, rest: int) -> list[str]:
        text = 'def f(\n    a\n):\n    """A\n\n    B."""\n' + "    a\n" * body + "a\n" * rest
        return oversize(text, ast.walk(ast.parse(text)))

    assert sizes(MOST_LINES_OF_A_BODY, MOST_LINES - MOST_LINES_OF_A_BODY - 6) == []
    assert sizes(MOST_LINES_OF_A_BODY + 1, 0) == ["1: the body of f has 51 lines, at most 50"]
    assert sizes(0, MOST_LINES) == ["306 lines, at most 300"]


def test_every_room_is_looked_at() -> None:
    rooms = {name.partition("/")[0] for name in sources()}
    assert rooms == set(ROOMS)
    assert len([*snippets()]) > 10


def test_no_name_fits_just_any_value() -> None:
    where, _ = complaints()
    where = where + [(name, line, word) for name, code in snippets() for line, word in vague(ast.walk(ast.parse(code)))]
    assert [(name, word) for name, _, word in where if (name, word) in ON_FILE] == sorted(ON_FILE)
    others = [f"{name}:{line}: {word}" for name, line, word in where if (name, word) not in ON_FILE]
    assert not others, "name each for what it holds:\n" + "\n".join(others)


def test_files_and_functions_stay_small() -> None:
    _, large = complaints()
    assert not large, "split these by theme:\n" + "\n".join(large)
