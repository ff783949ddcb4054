"""What a result records of entities, where a task labels the words that they are made of."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from .fields import Spec
from .recorded import Count, Points


class _Record(Spec):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EntityScore(_Record):
    """Of the entities of one type: right where the type and both borders are."""

    precision: Points
    recall: Points
    f1: Points
    entities: Count = Field(description="that are gold")
    given: Count = Field(description="that the model answers")


class EntityFlips(_Record):
    """Of a quantized model and the fp32 model it was made from: of the `entities` that either answers, those that are not the other's."""

    changed: Count
    entities: Count
