"""The spec of `prune`."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ...fields import Name, Positive, PositiveFraction, PositiveNumber
from ..stage import StageSpec

Counts = Annotated[int, Field(ge=0)]
BudgetName = Literal["flops", "latency", "size_mb", "widths"]
ScoreName = Literal["fisher", "obs"]
RepairName = Literal["least_squares"]
BUDGETS: tuple[BudgetName, ...] = ("flops", "latency", "size_mb")
WIDTHS = ("heads", "neurons")
_USUAL = 0.5


class Prune(StageSpec):
    """Remove attention heads and feed-forward neurons from the last model, without training.

    Set one budget, or widths: `heads`, `neurons` or both. A falling list of budgets gives the scores at each; the next stage receives
    the model at the last one. Shares are relative to the model that enters the stage, which an earlier one may have pruned already.
    """

    repeats: ClassVar[bool] = True
    recovered: ClassVar[bool] = True

    flops: PositiveFraction | tuple[PositiveFraction, ...] | None = Field(
        default=None,
        description="share of the layers' FLOPs to keep, at the task's mean length; 0.5 if neither a budget nor widths are given",
    )
    latency: PositiveFraction | tuple[PositiveFraction, ...] | None = Field(
        default=None,
        description="share of the whole model's latency to keep, measured by the run on this CPU: one text of the task's mean length, one "
        "thread, int8 if the recipe quantizes",
    )
    size_mb: PositiveNumber | tuple[PositiveNumber, ...] | None = Field(
        default=None, description="ONNX file size, int8 if the recipe quantizes; in units of 1,000,000 bytes"
    )
    heads: Counts | tuple[Counts, ...] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,  # what is dumped determines the names of runs
        description="attention heads to keep per layer: one number for all layers, or a list with one per layer, first to last; all, if "
        "only `neurons` is given",
    )
    neurons: Counts | tuple[Counts, ...] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="feed-forward neurons to keep per layer, likewise: a multiple of 16, or all of the layer's; all, if "
        "only `heads` is given",
    )
    examples: Positive = Field(
        default=2048,
        description="training examples used to score heads and neurons, and to fit the repair",
    )
    score: ScoreName | Literal["auto"] = Field(
        default="auto",
        description="importance of a head or neuron. fisher: how much the loss on labels depends on it; obs: its layer's error without it, "
        "after the others compensate by least squares (optimal brain surgeon); auto: fisher if models are trained on labels, else obs",
    )
    repair: Literal[RepairName, False] = Field(
        default="least_squares",
        description="fit the output matrices to the unpruned model's outputs by least squares; "
        "false: fit nothing, not even the remaining bias of a fully removed part",
    )
    name: Name | None = Field(default=None, exclude=True, description="name to tell several prune stages apart")
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")

    @model_validator(mode="after")
    def _one_that_falls(self) -> Prune:
        budgets, widths = ([name for name in names if getattr(self, name) is not None] for names in (BUDGETS, WIDTHS))
        if budgets and widths:
            every, actual = ", ".join([*budgets, *widths]), f"{' and '.join(budgets)} beside {' and '.join(widths)}"
            raise ValueError(f"{every}: expected a budget or widths, found {actual}; leave either out")
        if len(budgets) > 1:
            raise ValueError(f"{', '.join(budgets)}: expected one budget, found {' and '.join(budgets)}; leave one out")
        falls = self.budgets and all(before > after for before, after in pairwise(self.budgets))
        if self.budget != "widths" and not falls:
            raise ValueError(
                f"{self.budget}: expected decreasing numbers, the last for the model that the run continues with; "
                f"found {list(self.budgets)}"
            )
        return self

    @property
    def budget(self) -> BudgetName:
        """Name of the budget, or `widths`."""
        if any(getattr(self, name) is not None for name in WIDTHS):
            return "widths"
        names: list[BudgetName] = [name for name in BUDGETS if getattr(self, name) is not None]
        return names[0] if names else BUDGETS[0]

    @property
    def budgets(self) -> tuple[float, ...]:
        """The budgets, falling; empty if widths are given."""
        if self.budget == "widths":
            return ()
        value = getattr(self, self.budget)
        return value if isinstance(value, tuple) else (_USUAL if value is None else value,)
