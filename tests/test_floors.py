"""Imports go downward only, and the parts that must start fast do not import torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from import_walk import PACKAGE, Import, all_imports, names, part_of, sources, walk

FLOORS = {
    0: ("errors", "version", "fields", "losses"),
    1: (
        "spec",
        "catalog",
        "store",
        "results",
        "stats",
        "runtime",
        "metrics",
        "machine",
        "sessions",
        "graphs",
        "processes",
        "files",
        "hub",
        "tokenization",
        "provenance",
        "model_choice",
    ),
    2: ("models", "objective", "tasks", "corpus", "vocabulary"),
    3: ("training", "evaluate", "export", "quantize", "bench", "augment", "pruning"),
    4: ("pipeline", "report", "bundle", "search", "reproduction", "attention"),
    5: ("cli", "__init__", "__main__"),
}
FLOOR = {part: floor for floor, parts in FLOORS.items() for part in parts}
SEPARATE = set(FLOORS[3])  # these do not import each other either
HEAVY = {"torch", "transformers", "accelerate", "datasets", "neural_compressor"}
USE_TORCH = {"export", "models", "objective", "pruning", "training"}  # parts that work with tensors
LIGHT = set(FLOOR) - USE_TORCH - {"pipeline"}
LIGHT_OF_MODELS = (
    "models/__init__.py",
    "models/cards.py",
    "models/checkpoints/folders.py",
    "models/checkpoints/location.py",
    "models/checkpoints/pretrained.py",
    "models/checkpoints/vocabularies.py",
    "models/checkpoints/weights.py",
    "models/config_fields.py",
    "models/dimensions.py",
    "models/fake_quant/spec.py",
    "models/layer_maps.py",
    "models/masked_lm.py",
    "models/pruned/shape.py",
    "models/random_models.py",
    "models/students/__init__.py",
    "models/students/activations.py",
    "models/students/algebra.py",
    "models/students/build.py",
    "models/students/copying.py",
    "models/students/projection.py",
    "models/students/sizes.py",
    "models/word_table.py",
)
BESIDE_A_BUNDLE = {
    "runtime",
    "errors",
    "version",
    "files",
    "sessions",
    "machine",
}  # all that prediction needs
LATE = (
    "pipeline/training/held_out.py",
    "pipeline/training/initial_student.py",
    "pipeline/training/run.py",
    "pipeline/training/teacher_targets.py",
    "pipeline/training/throughput.py",
)  # imported by training stages when they run


def shown(wrong: list[Import]) -> str:
    return "\n".join(map(str, wrong))


def test_the_walk_sees_every_kind_of_import(tmp_path: Path):
    """Otherwise an empty list of violations would mean nothing."""
    text = """
from ..errors import CompressError
from .. import store
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
    entries = [
        Import("training/imaginary.py", node.lineno, name, when)
        for node, when in walk(ast.parse(text), "start")
        for name in names(node, ["compress", *path.relative_to(PACKAGE).parts[:-1]])
    ]
    assert [(item.name, item.when, item.part) for item in entries] == [
        ("compress.errors.CompressError", "start", "errors"),
        ("compress.store", "start", "store"),
        ("torch.nn", "start", None),
        ("typing.TYPE_CHECKING", "start", None),
        ("compress.cli.main", "types", "cli"),
        ("compress.training.loop.train", "call", "training"),
        ("numpy", "call", None),
    ]
    assert len(all_imports()) > 300


def test_every_part_has_a_floor_and_every_import_of_ours_exists():
    parts = {part_of(path.relative_to(PACKAGE).as_posix()) for path in sources()}
    assert parts <= set(FLOOR), f"no floor for {sorted(parts - set(FLOOR))}"
    unknown = [item for item in all_imports() if item.part is not None and item.part not in FLOOR]
    assert not unknown, shown(unknown)


def test_imports_go_downward_only():
    """Imports inside functions and for types included: a part can be understood from the parts below it."""
    wrong = [item for item in all_imports() if item.part in FLOOR and FLOOR[item.part] > FLOOR[part_of(item.file)]]
    assert not wrong, shown(wrong)


# Package -> its parts, floor by floor; those of one floor may import each other.
INSIDE = {
    "pipeline": (
        ("plan",),
        ("training", "results", "random_model"),
        ("stages",),
        ("recipes",),
        ("excluded",),
        (
            "planner",
            "max_lengths",
            "preflight",
            "data_notes",
            "distributed",
            "building",
            "side_by_side",
            "request",
            "estimate",
            "recorded_rates",
            "lengths",
            "memory",
        ),
        ("requested_plans",),
        ("run",),
        ("ablation", "__init__"),
    ),
    "models": (
        ("choice_rows", "fake_quant", "static_model", "xlnet"),
        ("families",),
        ("fast_graph", "pruned", "sentence_encoders", "student_forms", "word_table"),
        ("cards", "config_fields", "usable_classes"),
        ("heads",),
        ("dimensions",),
        ("growth", "layer_maps"),
        ("checkpoints",),
        ("features",),
        ("masked_lm", "random_models", "token_vectors"),
        ("cooccurrence_init", "masked_head", "students"),
    ),
    "report": (
        ("text",),
        ("grouping",),
        ("pictures",),
        ("sections",),
        ("recommendation",),
        ("page",),
        ("render", "summary"),
        ("ablation", "attention", "bench", "shipment"),
    ),
    "bundle": (
        ("document", "probes", "sentence_transformers_files"),
        ("files", "graph_files", "tolerance"),
        ("target",),
        ("shipping", "verifying"),
        ("push",),
    ),
    "spec": (
        ("limits", "base", "document", "stage"),
        ("kinds", "losses", "quantization", "schema"),
        ("problems", "overrides", "stages"),
        ("recipe", "cards", "task", "source"),
    ),
    "tasks": (
        ("reading",),
        ("synthetic", "data", "ensembles", "label_thresholds"),
        ("kinds",),
        ("scoring",),
        ("batches",),
        ("sources",),
        ("vocabulary",),
        ("loading",),
        ("own",),
    ),
}


def part_inside(name: str) -> str:
    """Return the part: `compress.pipeline.plan.Node` and `pipeline/plan/node.py` -> `plan`; `__init__` for the package itself."""
    words = name.removesuffix(".py").replace("/", ".").removeprefix("compress.").split(".")
    return words[1] if len(words) > 1 else "__init__"


@pytest.mark.parametrize("package", INSIDE)
def test_imports_go_downward_inside_a_package_too(package: str):
    floor = {part: number for number, parts in enumerate(INSIDE[package]) for part in parts}
    within = [item for item in all_imports() if part_of(item.file) == package]
    parts = {part_inside(item.file) for item in within}
    assert parts <= floor.keys() | {"__init__"}, f"no floor inside {package} for {sorted(parts - floor.keys())}"
    mine = [item for item in within if item.part == package and part_inside(item.file) in floor]
    wrong = [item for item in mine if floor.get(part_inside(item.name), 99) > floor[part_inside(item.file)]]
    assert mine
    assert not wrong, shown(wrong)


def test_the_parts_of_floor_three_do_not_import_each_other():
    apart = [item for item in all_imports() if {part_of(item.file), item.part} <= SEPARATE]
    wrong = [item for item in apart if item.part != part_of(item.file)]
    assert not wrong, shown(wrong)


def test_the_ground_floor_stands_on_nothing_but_what_a_loss_says_in_a_recipe():
    ground = [item for item in all_imports() if FLOOR[part_of(item.file)] == 0]
    wrong = [item for item in ground if item.part not in (None, part_of(item.file))]
    wrong = [item for item in wrong if (part_of(item.file), item.part) != ("losses", "fields")]
    assert not wrong, shown(wrong)


def test_the_runtime_needs_what_a_bundle_may_ask_of_its_user():
    allowed = {"onnxruntime", "tokenizers", "numpy", "compress"} | set(sys.stdlib_module_names)
    """OpenVINO is another runtime, imported when it is asked for."""
    for part, ours in (
        ("runtime", BESIDE_A_BUNDLE),
        ("sessions", {"sessions", "errors", "machine", "files"}),
        ("files", {"files", "errors"}),
    ):
        mine = [item for item in all_imports() if part_of(item.file) == part]
        wrong = [item for item in mine if item.name.split(".")[0] not in allowed]
        wrong += [item for item in mine if item.part is not None and item.part not in ours]
        assert mine
        assert not wrong, shown(wrong)


def test_light_parts_import_torch_only_when_they_need_it():
    light = [
        item
        for item in all_imports()
        if part_of(item.file) in LIGHT
        or item.file in LIGHT_OF_MODELS
        or item.file.startswith("models/families/")
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


def loaded_by(module: str, modules: set[str]) -> str | None:
    """Return those of `modules` that importing `module` in a fresh process loads, or None."""
    code = f"import sys, {module}; print(*(set(sys.modules) & {modules!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    return done.stdout.strip() or None


@pytest.mark.parametrize(
    "module", ["compress", "compress.cli", "compress.pipeline", "compress.report", "compress.bundle", "compress.tasks"]
)
def test_importing_brings_in_no_torch(module: str):
    assert loaded_by(module, HEAVY) is None


def test_importing_the_runtime_brings_in_only_what_counts_cores_and_opens_sessions():
    ours = {f"compress.{part}" for part in FLOOR if part not in BESIDE_A_BUNDLE}
    assert loaded_by("compress.runtime", HEAVY | ours | {"pydantic", "pandas", "onnx"}) is None


def test_a_package_that_is_brought_in_is_noticed():
    assert loaded_by("compress.runtime", {"numpy", "torch"}) == "numpy"
