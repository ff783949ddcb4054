"""What a search may try: axes of settings, and what a point of them asks of a run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ..errors import CompressError
from ..spec.recipe import Recipe

RECIPE, STUDENT = "recipe", "student"
Point = Mapping[str, Any]  # axis -> value; an axis without effect on the point's recipe is absent


@dataclass(frozen=True)
class Axis:
    """`name`: `recipe`, `student`, or a setting as `--set` names it, e.g. `distill.learning_rate`; `values`: what it may be,
    JSON scalars. `part`: what a recipe has for which the axis counts, a stage or a student; None: it counts for all."""

    name: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise CompressError(f"search space: {self.name}: expected at least one value, found none")
        if any(one == other for one, other in itertools.combinations(self.values, 2)):  # 1 and 1.0 too
            raise CompressError(f"search space: {self.name}: a value is there twice; leave one out")

    @property
    def part(self) -> str | None:
        return None if self.name == RECIPE else self.name.partition(".")[0]


def parts_of(recipe: Recipe) -> set[str]:
    """Its stages, and `student`, which no stage is called, where it has one."""
    student = set() if recipe.student is None else {STUDENT}
    return student.union(stage.id for stage in recipe.stages)


def axis_of(text: str) -> Axis:
    """`NAME=[VALUE, …]`, YAML. Raises `CompressError`."""
    name, _, values = text.partition("=")
    try:
        found = yaml.safe_load(values)
    except yaml.YAMLError:
        found = None
    if not name.strip() or not isinstance(found, list):
        raise CompressError(f"--try {text}: expected NAME=[VALUE, VALUE], e.g. distill.epochs=[1, 2]")
    if not all(isinstance(value, bool | int | float | str) for value in found):
        raise CompressError(f"--try {name}: expected numbers, words, true or false; found {values}")
    return Axis(name.strip(), tuple(found))


def overrides_of(point: Point) -> tuple[str, ...]:
    """The `PATH=VALUE` of `--set` that a point asks for."""
    return tuple(f"{name}={json.dumps(value)}" for name, value in point.items() if name not in (RECIPE, STUDENT))
