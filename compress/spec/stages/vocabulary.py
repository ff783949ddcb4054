"""The spec of `vocabulary`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...fields import Positive
from ..stage import StageSpec


class Vocabulary(StageSpec):
    """Keep the tokens that texts use, of the last model, and drop the others: its word table gets smaller, and so does its file."""

    corpus: Literal["auto"] | bool = Field(
        default="auto",
        description="keep the tokens of `--corpus` too, beside those of the task's train; auto: where it is given",
    )
    most: Positive | None = Field(
        default=None,
        description="tokens to keep at most: the most frequent of train, then of the corpus; special tokens and single characters "
        "count, and stay; null: all that are used",
    )
    min_count: Positive = Field(
        default=1,
        description="times that a token must stand in the corpus to stay for its sake; train's stay however rare",
    )
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")
