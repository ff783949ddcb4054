"""Card sections for students of one form: an ALBERT's own sizes, and where static vectors come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..fields import Positive, PositiveNumber, Spec
from .families.static import MOST_WINDOW

Layers = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]  # of the teacher, from 0


class Albert(Spec):
    """ALBERT's features (Lan et al. 2020, arXiv:1909.11942, §3.1): small embeddings, and layers that share weights."""

    embedding: Annotated[int, Field(ge=2)] = Field(default=128, description="width of the embedding tables (E)")
    share: Literal["all", "none"] = Field(
        default="all", description="weights that layers share: the whole block, or none"
    )
    groups: Positive = Field(
        default=1, description="distinct blocks with `share: all`; each is repeated layers / groups times"
    )
    block: Literal["fit", "mean"] | Layers = Field(
        default="fit",
        description="initial weights of a converted block. fit: least squares on the teacher's activations; mean: the mean of the "
        "teacher's blocks that it replaces; a list: a teacher layer (from 0) for each block",
    )


class Static(Spec):
    """Where a static student's vectors come from (each vocabulary token is passed through the teacher alone), and what a tagger reads of
    them."""

    states: Literal["last", "mean"] = Field(
        default="last",
        description="the token's state after the last layer, or the mean of its states before and after all layers",
    )
    rarity: PositiveNumber = Field(
        default=1e-3,
        description="a, in the weight a / (a + p) of a token with frequency p in the training texts; a tagger weights all tokens alike",
    )
    window: Annotated[int, Field(ge=0, le=MOST_WINDOW)] = Field(
        default=2, description="only for a tagger: tokens read on each side of the one being labelled; 0: none"
    )
