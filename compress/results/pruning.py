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

    budget: Rate = Field(description="as the recipe gives it; for widths the same as `reached`")
    reached: Rate = Field(
        description="what this shape costs, in the budget's unit, by the table of costs used for the choice; for widths by FLOPs"
    )
    heads: tuple[tuple[Count, ...], ...] = Field(
        description="numbers, from 0, of the heads kept in each layer; empty where attention is removed"
    )
    neurons: tuple[Count, ...] = Field(
        description="number kept in each layer; 0 where the feed-forward part is removed"
    )
    flops: Share = Field(description="remaining share of the layers' FLOPs at `mean_length` tokens")
    pruned: Points
    repaired: Points | None = Field(description="null without a repair")
    delta: Delta | None = Field(
        default=None,
        description="against the whole model, after the repair if there is one; older results lack this and the following fields",
    )
    divergence: Magnitude | None = Field(default=None, description="before the repair")
    repaired_divergence: Magnitude | None = Field(default=None, description="null without a repair")
    same: Share | None = Field(
        default=None,
        description="share of examples or words with the same decision as the whole model, or of queries with the same best "
        "passage, before the repair; null if answers are not decisions",
    )
    repaired_same: Share | None = Field(default=None, description="null without a repair")

    @property
    def final(self) -> float:
        """The score after the repair, if there is one."""
        return self.pruned if self.repaired is None else self.repaired


class PruningRecord(Record):
    """One prune stage; scores are headlines on the tuning split."""

    stage: str = Field(description="name in the recipe")
    model: str = Field(description="name of the last model in `models`")
    budget: BudgetName = Field(
        description="kind of the points' budgets; `widths` if the recipe gives heads or neurons instead"
    )
    score: ScoreName = Field(description="how heads and neurons were scored")
    repair: RepairName | None = Field(description="how the matrices were fitted; null without a repair")
    examples: Size = Field(description="training examples used to score heads and neurons")
    repair_examples: Size | None = Field(
        default=None,
        description="training examples used to fit the repair; if texts are long, only the last layer uses all of them. Null without a "
        "repair, and in older results",
    )
    mean_length: Rate = Field(description="mean length of training texts, in tokens")
    layer_heads: Size | None = Field(default=None, description="heads of an unpruned layer; older results have none")
    layer_neurons: Size | None = Field(default=None, description="the same for neurons")
    whole: Points = Field(description="score before pruning")
    points: Annotated[tuple[PrunedPoint, ...], Field(min_length=1)] = Field(
        description="one for each budget; the last is the model that the run continues with"
    )
    recovered: Points | None = Field(
        description="score after the last distill stage before the next prune stage; null if there is none, or it trains no head"
    )
