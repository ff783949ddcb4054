"""A kind of stage: what plans rely on, and the functions that plan, check and run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ...fields import Spec
from ...models.dimensions import Dimensions
from ...spec.recipe import Stage
from .draft import Draft
from .job import Job
from .node import KindFacts, Node
from .plan import Plan

TRAINING = ("torch", "transformers", "tokenizers")  # the libraries whose versions change the result of a training
S = TypeVar("S", bound=Spec)


@dataclass(frozen=True, kw_only=True)
class Kind(KindFacts[S]):
    """Everything about one kind of stage.

    `run` makes the artefact and returns its info as JSON values. `plan` adds the stage that a recipe names to a draft; None for a kind that
    other stages add. `check` raises `CompressError`, before anything is computed, for what `run` could not do. `smallest`, for a kind with
    `resized`: the smallest sizes that a run can reach, from the old ones.
    """

    run: Callable[[Job[S]], Mapping[str, Any]]
    plan: Callable[[Draft, Stage], None] | None = None
    check: Callable[[Plan, Node[S]], None] | None = None
    smallest: Callable[[Plan, Node[S], Dimensions], Dimensions] | None = None
