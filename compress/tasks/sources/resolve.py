"""A built-in task by name, or a task file."""

from __future__ import annotations

from pathlib import Path

from ...errors import CompressError, did_you_mean
from ...files.paths import expand_home, yaml_here
from ...spec.task import TaskSpec
from .builtin import BUILTIN_TASKS


def resolve_task(name_or_path: str) -> tuple[TaskSpec, Path | None]:
    """Return the task and, for a YAML file, its folder, where its relative paths start."""
    if name_or_path in BUILTIN_TASKS:
        return BUILTIN_TASKS[name_or_path], None
    if name_or_path.endswith((".yaml", ".yml")):
        from ...spec.source import load

        path = expand_home(name_or_path)
        return load(path, TaskSpec).read_from(path), path.parent
    if own := yaml_here(name_or_path):
        raise CompressError(
            f"no task {name_or_path!r} comes with the package; the file is given with its suffix: {own}"
        )
    near = did_you_mean(name_or_path.lower(), list(BUILTIN_TASKS))
    raise CompressError(f"no task {name_or_path!r}, and no task file, which ends in .yaml{near}")
