"""What a search may try: named axes of settings, in a file or by default, and what a point of them asks of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import CompressError

RECIPE, STUDENT = "recipe", "student"
Point = Mapping[str, Any]  # axis -> value; an axis without effect on the point's recipe is absent


@dataclass(frozen=True)
class Axis:
    """`name`: `recipe`, `student`, or a setting as `--set` names it, e.g. `distill.learning_rate`; `values`: what it may be,
    JSON scalars. `stage`: an axis of a setting counts only for recipes that have this stage."""

    name: str
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise CompressError(f"search space: {self.name}: expected at least one value, found none")
        if len(set(map(json.dumps, self.values))) != len(self.values):
            raise CompressError(f"search space: {self.name}: a value is there twice; leave one out")

    @property
    def stage(self) -> str | None:
        return None if self.name in (RECIPE, STUDENT) else self.name.partition(".")[0]


def overrides_of(point: Point) -> tuple[str, ...]:
    """The `PATH=VALUE` of `--set` that a point asks for."""
    return tuple(f"{name}={json.dumps(value)}" for name, value in point.items() if name not in (RECIPE, STUDENT))
