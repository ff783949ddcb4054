"""Records of how a model compares with another one: differences, flips, and the entities that tagged words form."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .record import Count, Difference, Magnitude, Points, Record, Share


class EntityScore(Record):
    """Score of the entities of one type; one is right if its type and both borders are."""

    precision: Points
    recall: Points
    f1: Points
    entities: Count = Field(description="gold entities")
    given: Count = Field(description="entities that the model predicts")


class EntityFlips(Record):
    """A quantized model against its fp32 model: of the `entities` that either predicts, those that the other does not."""

    changed: Count
    entities: Count


class QueryFlips(Record):
    """Of the `queries` of a split, those whose best passage differs from that of the fp32 model; of equal scores, the first
    in the file is the best."""

    changed: Count
    queries: Count


class ExactFlips(Record):
    """A quantized model against its fp32 model: the questions that only one of them answers exactly, as `exact_match` counts."""

    lost: Count = Field(description="answered exactly by the fp32 model only")
    gained: Count = Field(description="answered exactly by the quantized model only")


class Delta(Record):
    """Headline score minus another model's on the same examples: the baseline's (the fp32 teacher), or that of the fp32
    model from which a quantized one was made. Positive: better than that one."""

    points: Difference
    low: Difference = Field(description="95% paired bootstrap interval")
    high: Difference
    mcnemar_p: Share | None = Field(None, description="exact McNemar test, accuracy tasks only")
    seeds_p: Share | None = Field(default=None, description="only for a mean over several seeds")

    @property
    def distinguishable(self) -> bool:
        return not self.low <= 0 <= self.high


class Flip(Record):
    """An example that a quantized model decides differently from its fp32 model."""

    row: Count = Field(
        description="number of the example in the split, in file order: 1 is the first, a header does not count"
    )
    fp32: str = Field(description="label name")
    int8: str = Field(description="label name")
    confidence: Share = Field(description="the fp32 model's probability of its decision, 0 to 1")
    gold: Literal["fp32", "int8", "neither"] = Field(description="which of the two is right")


MOST_DISAGREEMENTS = 10  # recorded per model


class Disagreement(Record):
    """An example that a model decides differently from the baseline."""

    row: Count = Field(description="number of the example, as in `Flip`")
    teacher: str = Field(description="the baseline's label name")
    model: str = Field(description="label name")
    teacher_confidence: Share = Field(description="the baseline's probability of its decision, 0 to 1")
    model_confidence: Share = Field(description="the model's probability of its own decision, 0 to 1")
    gold: Literal["teacher", "model", "neither"] = Field(description="which of the two is right")


class ReliabilityBin(Record):
    """Decisions of similar confidence: one of 15 bins of equal width (Guo et al. 2017, arXiv:1706.04599, §3)."""

    number: Count = Field(
        ge=1,
        description="bin of decisions with a probability above (number − 1) / 15 and at most number / 15",
    )
    examples: Count
    confidence: Share = Field(description="mean probability")
    right: Share = Field(description="share of correct decisions")


class Fidelity(Record):
    """A quantized model compared with its fp32 model, on the first reported split."""

    reference: str = Field(description="array name of the fp32 model in predictions.npz")
    split: str
    examples: Count
    delta: Delta = Field(description="against the reference")
    flips: Count | None = Field(
        None, description="examples with a different decision; null if answers are not decisions"
    )
    flip_rate: Share | None = Field(None, description="share of the examples, 0 to 1")
    flipped: tuple[Flip, ...] = Field((), description="all flips, those where fp32 is most confident first")
    mean_logit_difference: Magnitude = Field(description="mean |fp32 − int8| over examples and classes")
    worst_logit_difference: Magnitude
    fp32_calibration_error: Points | None = Field(
        None,
        description="expected calibration error in points, 15 bins of equal width; null if answers have no probability",
    )
    int8_calibration_error: Points | None = None
    mean_cosine: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="cosine of each text's two vectors; like the next two fields, only for vectors",
    )
    worst_cosine: float | None = Field(default=None, ge=-1, le=1)
    nearest_kept: Share | None = Field(
        default=None,
        description="share of each text's ten nearest texts by fp32 that are also among the ten nearest by int8",
    )
    entity_flips: EntityFlips | None = Field(default=None, description="only for tagging with labels of entities")
    query_flips: QueryFlips | None = Field(default=None, description="only for ranking")
    exact_flips: ExactFlips | None = Field(default=None, description="only for answers to questions")
