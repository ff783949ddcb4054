"""The spec of `prune`."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from ...fields import Name, Positive, PositiveNumber
from ..stage import StageSpec

Share = Annotated[float, Field(gt=0, lt=1)]
BudgetName = Literal["flops", "latency", "size_mb"]
ScoreName = Literal["fisher", "obs"]
RepairName = Literal["least_squares", "scale"]
BUDGETS: tuple[BudgetName, ...] = get_args(BudgetName)
_USUAL = 0.5


class Prune(StageSpec):
    """Take attention heads and feed-forward neurons out of the last model, without training.

    It has one budget. A falling list gives the scores at each point; the last one's model goes on. Shares are of the model that comes to
    the stage, which one before may have pruned already.
    """

    repeats: ClassVar[bool] = True
    recovered: ClassVar[bool] = True

    flops: Share | tuple[Share, ...] | None = Field(
        default=None,
        description="share of its layers' FLOPs that is left, at the task's mean length; 0.5 where no budget is given",
    )
    latency: Share | tuple[Share, ...] | None = Field(
        default=None,
        description="share of the whole model's time that is left on this CPU, of one text of the task's mean length on one thread, in "
        "int8 where the recipe quantizes; measured by the run",
    )
    size_mb: PositiveNumber | tuple[PositiveNumber, ...] | None = Field(
        default=None, description="of its ONNX file, int8 where the recipe quantizes; in units of 1,000,000 bytes"
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
        given = [name for name in BUDGETS if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(f"{', '.join(given)}: expected one budget, found {' and '.join(given)}; leave one out")
        if not self.budgets or any(after >= before for before, after in pairwise(self.budgets)):
            raise ValueError(
                f"{self.budget}: expected falling numbers, the last for the model that goes on; found {list(self.budgets)}"
            )
        return self

    @property
    def budget(self) -> BudgetName:
        """Its name."""
        given: list[BudgetName] = [name for name in BUDGETS if getattr(self, name) is not None]
        return given[0] if given else BUDGETS[0]

    @property
    def budgets(self) -> tuple[float, ...]:
        """Falling."""
        value = getattr(self, self.budget)
        return value if isinstance(value, tuple) else (_USUAL if value is None else value,)
