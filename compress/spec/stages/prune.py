"""The spec of `prune`."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ...fields import Name, Positive, PositiveNumber
from ..stage import StageSpec

Share = Annotated[float, Field(gt=0, lt=1)]
Counts = Annotated[int, Field(ge=0)]
BudgetName = Literal["flops", "latency", "size_mb", "widths"]
ScoreName = Literal["fisher", "obs"]
RepairName = Literal["least_squares", "scale"]
BUDGETS: tuple[BudgetName, ...] = ("flops", "latency", "size_mb")
WIDTHS = ("heads", "neurons")
_USUAL = 0.5


class Prune(StageSpec):
    """Take attention heads and feed-forward neurons out of the last model, without training.

    It has one budget, or widths: `heads`, `neurons` or both. A falling list of budgets gives the scores at each point; the last one's model
    goes on. Shares are of the model that comes to the stage, which one before may have pruned already.
    """

    repeats: ClassVar[bool] = True
    recovered: ClassVar[bool] = True

    flops: Share | tuple[Share, ...] | None = Field(
        default=None,
        description="share of its layers' FLOPs that is left, at the task's mean length; 0.5 where neither a budget nor widths are given",
    )
    latency: Share | tuple[Share, ...] | None = Field(
        default=None,
        description="share of the whole model's time that is left on this CPU, of one text of the task's mean length on one thread, in "
        "int8 where the recipe quantizes; measured by the run",
    )
    size_mb: PositiveNumber | tuple[PositiveNumber, ...] | None = Field(
        default=None, description="of its ONNX file, int8 where the recipe quantizes; in units of 1,000,000 bytes"
    )
    heads: Counts | tuple[Counts, ...] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,  # what is dumped decides the names of runs
        description="attention heads that each layer keeps: one number for all layers, or a list with one for each, first to last; where "
        "`neurons` alone is given, all",
    )
    neurons: Counts | tuple[Counts, ...] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="feed-forward neurons that each layer keeps, in the same way: a multiple of 16, or all that the layer has; where "
        "`heads` alone is given, all",
    )
    examples: Positive = Field(
        default=2048,
        description="training examples that tell which heads and neurons matter, and that the repair is fitted to",
    )
    score: ScoreName | Literal["auto"] = Field(
        default="auto",
        description="what a head or neuron is judged by: `fisher`, how much the loss on labels depends on it; `obs`, the error of its "
        "layer where the others make up for it by least squares (optimal brain surgeon); auto: `fisher` where labels train models",
    )
    repair: Literal["least_squares", "scale", False] = Field(
        default="least_squares",
        description="fit the matrices behind the gaps to what the whole model gives: all weights (`least_squares`), or one factor for "
        "each head and neuron (`scale`); false: nothing is fitted, nor the bias that is left of a whole part",
    )
    name: Name | None = Field(default=None, exclude=True, description="tells several prune stages apart")
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")

    @model_validator(mode="after")
    def _one_that_falls(self) -> Prune:
        given, widths = ([name for name in names if getattr(self, name) is not None] for names in (BUDGETS, WIDTHS))
        if given and widths:
            every, found = ", ".join([*given, *widths]), f"{' and '.join(given)} beside {' and '.join(widths)}"
            raise ValueError(f"{every}: expected a budget or widths, found {found}; leave either out")
        if len(given) > 1:
            raise ValueError(f"{', '.join(given)}: expected one budget, found {' and '.join(given)}; leave one out")
        falls = self.budgets and all(before > after for before, after in pairwise(self.budgets))
        if self.budget != "widths" and not falls:
            raise ValueError(
                f"{self.budget}: expected falling numbers, the last for the model that goes on; found {list(self.budgets)}"
            )
        return self

    @property
    def budget(self) -> BudgetName:
        """Its name, or `widths`."""
        if any(getattr(self, name) is not None for name in WIDTHS):
            return "widths"
        given: list[BudgetName] = [name for name in BUDGETS if getattr(self, name) is not None]
        return given[0] if given else BUDGETS[0]

    @property
    def budgets(self) -> tuple[float, ...]:
        """Falling; none where widths are given."""
        if self.budget == "widths":
            return ()
        value = getattr(self, self.budget)
        return value if isinstance(value, tuple) else (_USUAL if value is None else value,)
