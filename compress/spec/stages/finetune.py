"""The spec of `finetune`: one training, or several of which the best is kept, as in BERT (Devlin et al. 2019, arXiv:1810.04805, §4.1: one
of four learning rates for each task)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from ...fields import PositiveNumber
from .training import PerTask, Training

CHOSEN = ("learning_rate", "epochs")  # fields that may list values, the first one varying slowest
MOST_CANDIDATES = 16


def _check_distinct(values: tuple[float, ...]) -> tuple[float, ...]:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ValueError(f"expected each value once, found {twice:g} twice")
    return values


if TYPE_CHECKING:
    OneOrSeveral = PositiveNumber  # a stage in a plan is one training; `combinations` expands lists
else:
    _Several = Annotated[tuple[PositiveNumber, ...], Field(min_length=1), AfterValidator(_check_distinct)]
    OneOrSeveral = Annotated[
        Annotated[PositiveNumber, Tag("one")] | Annotated[_Several, Tag("several")],
        Discriminator(lambda value: "several" if isinstance(value, list | tuple) else "one"),
    ]


class Finetune(PerTask, Training):
    """Fine-tune the teacher on the task's labels, once for each combination of listed values."""

    takes_lists: ClassVar[bool] = True

    epochs: OneOrSeveral = Field(
        default=3.0, description="passes over the training split; of a list, the best on the tuning split is kept"
    )
    learning_rate: OneOrSeveral = Field(
        default=5e-5, description="peak, after the warm-up; of a list, the best on the tuning split is kept"
    )

    @model_validator(mode="after")
    def _few_enough(self) -> Finetune:
        if problem := too_many(self.model_dump(include={*CHOSEN})):
            raise ValueError(problem)
        return self


def lists(fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that list values to choose among."""
    return [name for name in CHOSEN if isinstance(fields.get(name), list | tuple)]


def combinations(fields: Mapping[str, Any]) -> list[dict[str, float]]:
    """Return every combination of the listed values, in the order written; one, empty, if nothing is listed."""
    names = lists(fields)
    return [dict(zip(names, values, strict=True)) for values in product(*(fields[name] for name in names))]


def too_many(fields: Mapping[str, Any]) -> str | None:
    """Return the problem with too many combinations, after the name of the field; None if they are few enough."""
    names = lists(fields)
    count = math.prod(len(fields[name]) for name in names)
    if count <= MOST_CANDIDATES:
        return None
    return f"{names[0]}: expected at most {MOST_CANDIDATES} combinations to choose among, found {count}"
