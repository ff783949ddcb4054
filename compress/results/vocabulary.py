"""Records of a reduced vocabulary: how many tokens stayed, and how many texts keep their tokens."""

from __future__ import annotations

from pydantic import Field

from .record import Count, Record, Share, Size


class TextRates(Record):
    """Rates over whole texts; a pair, a query and its passage, or a paragraph of plain text counts as one."""

    texts: Count
    same: Count = Field(description="texts that are cut into the same tokens as before")
    unknown: Share = Field(description="of their tokens before, those that stand for what is in no vocabulary")
    unknown_after: Share


class VocabularyRecord(Record):
    """The vocabulary of the last model."""

    model: str = Field(description="its name, as in `models`")
    tokens: Size = Field(description="rows of its table of words")
    tokens_before: Size
    seen: dict[str, TextRates] = Field(
        description="`train`, `tuning` and, where plain text was given, `corpus`; what stays was chosen on train and the corpus"
    )
    reported: dict[str, TextRates] = Field(description="reported split -> rates; nothing was chosen by these")
    files_before: dict[str, Size] = Field(
        description="model and precision -> bytes that its file would have with all tokens"
    )
