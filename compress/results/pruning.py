"""Records of a pruned model: what stayed at each budget, and the scores along the way."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..spec.stages.prune import BudgetName, RepairName, ScoreName
from .fidelity import Delta
from .record import Count, Magnitude, Points, Rate, Record, Share, Size


class PrunedPoint(Record):
    """The model at one budget. Scores are headlines on the tuning split. Divergences, measured as for the kind of task, are
    from the whole model's outputs there."""

    budget: Rate = Field(description="as the recipe says it; of widths the same as `reached`")
    reached: Rate = Field(
        description="the same of this shape, by the table of costs that the choice went by, of widths by their FLOPs"
    )
    heads: tuple[tuple[Count, ...], ...] = Field(
        description="of each layer the numbers, from 0, of the heads that stay; none where its attention is taken out"
    )
    neurons: tuple[Count, ...] = Field(
        description="of each layer how many stay; 0 where its feed-forward part is taken out"
    )
    flops: Share = Field(description="of the layers' FLOPs at `mean_length` tokens")
    pruned: Points
    repaired: Points | None = Field(description="none without a repair")
    delta: Delta | None = Field(
        default=None,
        description="against the whole model, after the repair if there is one; results of before have none, nor what follows",
    )
    divergence: Magnitude | None = Field(default=None, description="before the repair")
    repaired_divergence: Magnitude | None = Field(default=None, description="none without a repair")
    same: Share | None = Field(
        default=None,
        description="of the examples, or words, decided as by the whole model, or of queries those with the same best passage, before the "
        "repair; none where answers are no decisions",
    )
    repaired_same: Share | None = Field(default=None, description="none without a repair")

    @property
    def final(self) -> float:
        """The score after the repair, if there is one."""
        return self.pruned if self.repaired is None else self.repaired


class PruningRecord(Record):
    """One prune stage; scores are headlines on the tuning split."""

    stage: str = Field(description="its name in the recipe")
    model: str = Field(description="what the last model is called in `models`")
    budget: BudgetName = Field(
        description="what the points are budgets of; `widths` where the recipe says heads or neurons in its place"
    )
    score: ScoreName = Field(description="what heads and neurons were judged by")
    repair: RepairName | None = Field(description="how the matrices were fitted; none without a repair")
    examples: Size = Field(description="of train, by which heads and neurons were judged")
    repair_examples: Size | None = Field(
        default=None,
        description="of train, by which the repair was fitted; where texts are long, the last layer alone by all of them. None without a "
        "repair; results of before have none",
    )
    mean_length: Rate = Field(description="of train, in tokens")
    layer_heads: Size | None = Field(
        default=None, description="of a layer from which nothing was ever taken; results of before have none"
    )
    layer_neurons: Size | None = Field(default=None, description="the same of neurons")
    whole: Points = Field(description="before pruning")
    points: Annotated[tuple[PrunedPoint, ...], Field(min_length=1)] = Field(
        description="one for each budget; the last is the model that went on"
    )
    recovered: Points | None = Field(
        description="after the last distill stage before the next prune stage; none without one, or one that trains no head"
    )
