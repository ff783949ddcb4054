"""The search space: axes of settings, and what a point means for a run."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CompressError
from ..spec.overrides import PART, parse_value
from ..spec.recipe import Recipe

RECIPE, STUDENT = "recipe", "student"
Point = Mapping[str, Any]  # axis -> value; an axis without effect on the point's recipe is absent


@dataclass(frozen=True)
class Axis:
    """`name`: `recipe`, `student`, or a setting as `--set` names it, e.g. `distill.learning_rate`. `values`: the candidates,
    JSON scalars. `part`: the stage or student that a recipe must have for the axis to apply; None: it applies to all."""

    name: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise CompressError(f"search space: {self.name}: expected at least one value, found none")
        if any(one == other for one, other in itertools.combinations(self.values, 2)):  # 1 and 1.0 too
            raise CompressError(f"search space: {self.name}: a value is listed twice; leave one out")

    @property
    def part(self) -> str | None:
        return None if self.name == RECIPE else self.name.partition(".")[0]


def parts_of(recipe: Recipe) -> set[str]:
    """Return the recipe's stages, and `student`, which is no stage's name, if it has one."""
    student = set() if recipe.student is None else {STUDENT}
    return student.union(stage.id for stage in recipe.stages)


def setting_path(name: str, recipe: Recipe) -> tuple[str, ...]:
    """Return the path of a setting, beginning with the stage's name also where `name` has its number, as `stages[1].distill.epochs`."""
    match tuple(part["index"] or part["name"] or part["quoted"] for part in PART.finditer(name.strip())):
        case ("stages", number, _, *rest) if rest and number.isdecimal() and int(number) < len(recipe.stages):
            return recipe.stages[int(number)].id, *rest
        case path:
            return path


def axis_of(text: str) -> Axis:
    """Parse `NAME=[VALUE, …]`, with values as `--set` reads them. Raises `CompressError`."""
    name, _, values = text.partition("=")
    try:
        choices = parse_value(values)
    except ValueError as error:
        raise CompressError(f"--try {name}: {error}") from None
    if not name.strip() or not isinstance(choices, tuple):
        raise CompressError(f"--try {text}: expected NAME=[VALUE, VALUE], e.g. distill.epochs=[1, 2]")
    if not all(isinstance(value, bool | int | float | str) for value in choices):
        raise CompressError(f"--try {name}: expected numbers, words, true or false; found {values}")
    return Axis(name.strip(), choices)


def check_names(axes: Sequence[Axis]) -> None:
    """Raise `CompressError` for a setting with two axes, and for an axis of recipes."""
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise CompressError(f"--try {name}: expected one list of values, found {names.count(name)}; join them")
        if name == RECIPE:
            raise CompressError(f"--try {name}: name the recipes before the options: compress search int8 distilbert")


def overrides_of(point: Point) -> tuple[str, ...]:
    """Return the `PATH=VALUE` of `--set` for a point."""
    return tuple(f"{name}={json.dumps(value)}" for name, value in point.items() if name not in (RECIPE, STUDENT))
