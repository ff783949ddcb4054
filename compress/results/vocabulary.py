"""Records of a reduced vocabulary: how many tokens stayed, and how many texts keep their tokens."""

from __future__ import annotations

from pydantic import Field

from .record import Count, Record, Share, Size


class TextRates(Record):
    """Rates over whole texts; a pair, a query and its passage, or a paragraph of plain text counts as one."""

    texts: Count
    same: Count = Field(description="texts that are tokenized as before")
    unknown: Share = Field(description="share of unknown tokens before")
    unknown_after: Share


class VocabularyRecord(Record):
    """The vocabulary of the last model."""

    model: str = Field(description="name, as in `models`")
    tokens: Size = Field(description="rows of its word embedding table")
    tokens_before: Size
    seen: dict[str, TextRates] = Field(
        description="`train`, `tuning` and, if plain text was given, `corpus`; the tokens to keep were chosen on train and the corpus"
    )
    reported: dict[str, TextRates] = Field(
        description="reported split -> rates; these splits had no part in the choice"
    )
    files_before: dict[str, Size] = Field(
        description="model and precision -> size in bytes that its file would have with all tokens"
    )
