"""Records of the similarity between the teacher's layers and those of a student, or of another model made from it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from .record import Count, Record, Share


class LayerSimilarity(Record):
    """Similarity of the last fp32 model to the teacher, on texts of the tuning split, over all tokens except padding.

    Rows are the model's layers, columns the teacher's.
    """

    model: str = Field(min_length=1, description="name in `models`, e.g. `student`")
    split: Literal["tuning"] = "tuning"
    texts: Count = Field(default=0, description="texts that were read, or windows for tasks that read texts in windows")
    tokens: Count = Field(default=0, description="tokens in these texts")
    states: tuple[tuple[Share, ...], ...] = Field(
        default=(), description="linear CKA of the states after each layer; the first row and column are the embeddings"
    )
    attention: tuple[tuple[Share | None, ...], ...] = Field(
        default=(),
        description="Jensen-Shannon divergence of attention averaged over heads, in bits, averaged over attending tokens; the "
        "first row and column are the first layers; null where a layer has no heads",
    )
    left_out: tuple[str, ...] = Field(default=(), description="what could not be compared, and why")

    @model_validator(mode="after")
    def _has_rows_of_one_length(self) -> Self:
        for name, table in (("states", self.states), ("attention", self.attention)):
            if any(len(row) != len(table[0]) or not row for row in table):
                raise ValueError(f"`{name}`: expected as many numbers in each row, at least one")
        shapes = [(len(table), len(table[0])) for table in (self.states, self.attention) if table]
        if self.attention and (not self.states or shapes[0] != (shapes[1][0] + 1, shapes[1][1] + 1)):
            raise ValueError("`attention`: expected a row and a column less than `states` has")
        return self
