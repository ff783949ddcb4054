"""Imports go downward only, and the parts that must start fast do without torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "compress"
FLOORS = {
    0: ("errors", "limits", "losses"),
    1: (
        "spec",
        "catalog",
        "store",
        "results",
        "runtime",
        "statistics",
        "machine",
        "sessions",
        "graphs",
        "packed",
        "signals",
        "fidelity",
        "processes",
        "places",
    ),
    2: ("models", "objective", "tasks", "corpus"),
    3: ("training", "evaluate", "export", "quantize", "bench", "augment"),
    4: ("pipeline", "report", "bundle"),
    5: ("cli", "__init__", "__main__"),
}
FLOOR = {part: floor for floor, parts in FLOORS.items() for part in parts}
SEPARATE = set(FLOORS[3])  # these do not import each other either
HEAVY = {"torch", "transformers", "accelerate", "datasets", "neural_compressor"}
LIGHT = ("errors", "limits", "spec", "catalog", "store", "results", "runtime", "statistics", "machine", "sessions", "graphs",
         "packed", "signals", "fidelity", "processes", "places", "tasks", "corpus", "evaluate", "quantize", "bench", "augment", "report",
         "bundle", "cli", "__init__", "__main__")  # fmt: skip
LIGHT_OF_MODELS = (
    "models/__init__.py",
    "models/checkpoints.py",
    "models/dimensions.py",
    "models/layer_maps.py",
    "models/layers.py",
    "models/locations.py",
    "models/masked_lm.py",
    "models/pretrained.py",
    "models/random_models.py",
    "models/students/__init__.py",
    "models/students/activations.py",
    "models/students/algebra.py",
    "models/students/bert.py",
    "models/students/body.py",
    "models/students/build.py",
    "models/students/distilbert.py",
    "models/students/projection.py",
    "models/students/sizes.py",
    "models/students/table.py",
    "models/uses.py",
)
LATE = (
    "pipeline/arithmetic.py",
    "pipeline/aware_training.py",
    "pipeline/starting.py",
    "pipeline/teaching.py",
    "pipeline/training_stages.py",
)  # imported by stages that train, when they do


@dataclass(frozen=True)
class Import:
    """`name` as seen from the root; `when`: `start`, `call` (inside a function) or `types` (TYPE_CHECKING)."""

    file: str
    line: int
    name: str
    when: str

    @property
    def part(self) -> str | None:
        """The part of the package that is imported, or None for other packages; `__version__` is the root's own."""
        words = self.name.split(".")
        if words[0] != "compress" or words[1:] == ["__version__"]:
            return None
        return words[1] if len(words) > 1 else "__init__"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name} ({self.when})"


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(file: str) -> str:
    return file.split("/")[0].removesuffix(".py")


def imports(path: Path) -> Iterator[Import]:
    file = path.relative_to(PACKAGE).as_posix()
    package = ["compress", *path.relative_to(PACKAGE).parts[:-1]]
    for node, when in walk(ast.parse(path.read_text(encoding="utf-8")), "start"):
        for name in names(node, package):
            yield Import(file, node.lineno, name, when)


def walk(node: ast.AST, when: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    for child in ast.iter_child_nodes(node):
        inside = when
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
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


ALL = [found for path in sources() for found in imports(path)]


def shown(wrong: list[Import]) -> str:
    return "\n".join(map(str, wrong))


def test_the_walk_sees_every_kind_of_import(tmp_path: Path):
    """So that an empty list of violations means something."""
    text = """
from ..errors import CompressError
from .. import store, __version__
import torch.nn as nn
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from compress.cli import main
class A:
    def f(self):
        from .loop import train
        import numpy
"""
    path = PACKAGE / "training" / "imaginary.py"
    found = [
        Import("training/imaginary.py", node.lineno, name, when)
        for node, when in walk(ast.parse(text), "start")
        for name in names(node, ["compress", *path.relative_to(PACKAGE).parts[:-1]])
    ]
    assert [(item.name, item.when, item.part) for item in found] == [
        ("compress.errors.CompressError", "start", "errors"),
        ("compress.store", "start", "store"),
        ("compress.__version__", "start", None),
        ("torch.nn", "start", None),
        ("typing.TYPE_CHECKING", "start", None),
        ("compress.cli.main", "types", "cli"),
        ("compress.training.loop.train", "call", "training"),
        ("numpy", "call", None),
    ]
    assert len(ALL) > 300


def test_every_part_has_a_floor_and_every_import_of_ours_exists():
    parts = {part_of(path.relative_to(PACKAGE).as_posix()) for path in sources()}
    assert parts <= set(FLOOR), f"no floor for {sorted(parts - set(FLOOR))}"
    unknown = [item for item in ALL if item.part is not None and item.part not in FLOOR]
    assert not unknown, shown(unknown)


def test_imports_go_downward_only():
    """Those inside functions and those for types alone, too: a part is understood by those below it."""
    wrong = [item for item in ALL if item.part in FLOOR and FLOOR[item.part] > FLOOR[part_of(item.file)]]
    assert not wrong, shown(wrong)


def test_the_parts_of_floor_three_do_not_import_each_other():
    wrong = [item for item in ALL if {part_of(item.file), item.part} <= SEPARATE and item.part != part_of(item.file)]
    assert not wrong, shown(wrong)


def test_losses_and_errors_stand_on_nothing_of_ours():
    wrong = [item for item in ALL if FLOOR[part_of(item.file)] == 0 and item.part not in (None, part_of(item.file))]
    assert not wrong, shown(wrong)


def test_the_runtime_needs_what_a_bundle_may_ask_of_its_user():
    allowed = {"onnxruntime", "tokenizers", "numpy", "compress"} | set(sys.stdlib_module_names)
    """OpenVINO is another runtime, imported when it is asked for."""
    for part, ours in (
        ("runtime", {"runtime", "errors", "sessions", "machine"}),
        ("sessions", {"sessions", "errors", "machine"}),
    ):
        mine = [item for item in ALL if part_of(item.file) == part]
        wrong = [item for item in mine if item.name.split(".")[0] not in allowed]
        wrong += [item for item in mine if item.part is not None and item.part not in ours]
        assert mine
        assert not wrong, shown(wrong)


def test_light_parts_import_torch_only_when_they_need_it():
    light = [
        item
        for item in ALL
        if part_of(item.file) in LIGHT
        or item.file in LIGHT_OF_MODELS
        or (part_of(item.file) == "pipeline" and item.file not in LATE)
    ]
    wrong = [item for item in light if item.when == "start" and item.name.split(".")[0] in HEAVY]
    assert not wrong, shown(wrong)
    assert all((PACKAGE / file).exists() for file in (*LIGHT_OF_MODELS, *LATE))


def test_only_the_command_line_prints():
    printed = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sources()
        if part_of(path.relative_to(PACKAGE).as_posix()) not in ("cli", "__main__")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
    ]
    assert not printed


def loaded_by(module: str, found: set[str]) -> str | None:
    """`module` if importing it in a fresh process brings in any of `found`."""
    code = f"import sys, {module}; print(*(set(sys.modules) & {found!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    return done.stdout.strip() or None


@pytest.mark.parametrize(
    "module", ["compress", "compress.cli", "compress.pipeline", "compress.report", "compress.bundle", "compress.tasks"]
)
def test_importing_brings_in_no_torch(module: str):
    assert loaded_by(module, HEAVY) is None


def test_importing_the_runtime_brings_in_only_what_counts_cores_and_opens_sessions():
    ours = {f"compress.{part}" for part in FLOOR if part not in ("runtime", "errors", "sessions", "machine")}
    assert loaded_by("compress.runtime", HEAVY | ours | {"pydantic", "pandas", "onnx"}) is None


def test_a_package_that_is_brought_in_is_noticed():
    assert loaded_by("compress.runtime", {"numpy", "torch"}) == "numpy"
