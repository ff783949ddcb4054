"""The spec of `vocabulary`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...fields import Positive
from ..stage import StageSpec


class Vocabulary(StageSpec):
    """Keep only those tokens of the last model that texts use: its word embeddings shrink, and so does its file."""

    corpus: Literal["auto"] | bool = Field(
        default="auto",
        description="keep the tokens of `--corpus` as well as those of the training split; auto: if `--corpus` is given",
    )
    most: Positive | None = Field(
        default=None,
        description="limit on tokens: the most frequent of the training split, then of the corpus; special tokens and single characters "
        "count, and are always kept; null: all that are used",
    )
    min_count: Positive = Field(
        default=1,
        description="occurrences that a token of the corpus needs to be kept; those of the training split are kept however rare",
    )
    enabled: bool = Field(default=True, exclude=True, description="false leaves the stage out")
