"""Convert labelled character spans to a label for each word of a text, in IOB2."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import brief
from ...metrics.tags import OUTSIDE
from ...runtime.words import word_spans
from .columns import Rows
from .tables import refuse

FORMS = '{"start": 0, "end": 5, "label": "PER"} or [0, 5, "PER"]'
SPANS = "entities"  # usual name of their column
LABEL = "label"  # key of a span's label
_FIELDS = ("start", "end", LABEL)


@dataclass(frozen=True)
class Span:
    """`start` and `end` in characters of the text, end exclusive."""

    start: int
    end: int
    label: str

    def __str__(self) -> str:
        return f"{self.label} from {self.start} to {self.end}"


def spans_as_tags(rows: Rows, column: str, label: str) -> tuple[list[str], list[list[tuple[str, int, int]]], list[str]]:
    """Return texts; for each, (tag, start, end) of its words; notes. A span that cuts a word includes all of it. Raises `CompressError`,
    with line numbers, for invalid texts, and for spans that are outside the text, contain no word, or share one."""
    texts, labels, problems, cut, total = [], [], [], 0, 0
    for number, text, value in zip(rows.numbers, rows.texts[0], rows.labels, strict=True):
        spans = _spans(text, value, column, label)
        words = word_spans(text) if isinstance(text, str) else word_spans("")
        tags = _tags(words, spans) if isinstance(spans, list) else spans
        if isinstance(tags, str) or isinstance(spans, str):
            problems.append((number, str(tags)))
            continue
        total += len(spans)
        cut += sum(_cuts_word(words, span) for span in spans)
        texts.append(text)
        labels.append([(tag, int(start), int(end)) for tag, (start, end) in zip(tags, words, strict=True)])
    refuse(rows.place, rows.unit, problems)
    return texts, labels, [f"{cut:,} of {total:,} spans cut a word and are extended to all of it"] if cut else []


def _spans(text: Any, value: Any, column: str, label: str) -> list[Span] | str:
    """Return spans in text order, or what is wrong with them."""
    if not isinstance(text, str):
        return f"{column}: expected text or a list of words, found {brief(text)}"
    if value is None:
        return []
    if isinstance(value, dict):  # the hub's format for lists of objects
        columns: list[Any] = [value.get(name) for name in _FIELDS]
        even = all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns)
        value = list(zip(*columns, strict=True)) if even else value
    if not isinstance(value, list):
        return f"{label}: expected a list of spans, such as {FORMS}, found {brief(value)}"
    spans = []
    for index, part in enumerate(value, start=1):
        span = _span(part)
        if span is None:
            hint = "; tags need a list of words" if isinstance(part, str) else ""
            return f"{label}: span {index}: expected {FORMS}, found {brief(part)}{hint}"
        if not 0 <= span.start < span.end <= len(text):
            return f"{label}: span {index}: {span}: expected a part of the text's {len(text):,} characters"
        excerpt, own = text[span.start : span.end], part.get("text") if isinstance(part, dict) else None
        if isinstance(own, str) and _is_elsewhere(own, excerpt, text):
            return (
                f"{label}: span {index}: {span}: expected its `text`, {brief(own)}, found {brief(excerpt)}; `start` and `end` count "
                "characters, not bytes or UTF-16 units"
            )
        spans.append(span)
    return sorted(spans, key=lambda span: span.start)


def _is_elsewhere(own: str, excerpt: str, text: str) -> bool:
    """Whether a span's `own` text is a part of the text, but not where the `excerpt` is. Spaces, case and punctuation may differ."""
    spaced, whole = " ".join(own.split()), " ".join(text.split())
    return spaced != whole and spaced in whole and _characters(own) not in _characters(excerpt)


def _characters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _span(part: Any) -> Span | None:
    if isinstance(part, dict):
        part = [part.get(name) for name in _FIELDS]
    if not isinstance(part, list | tuple) or len(part) != len(_FIELDS):
        return None
    start, end, label = part
    if not all(isinstance(place, int) and not isinstance(place, bool) for place in (start, end)):
        return None
    return Span(start, end, label.strip()) if isinstance(label, str) and label.strip() else None


def _tags(words: np.ndarray, spans: list[Span]) -> list[str] | str:
    """Return the tag of each word, or what is wrong with the spans."""
    tags, taken = [OUTSIDE] * len(words), -1
    for before, span in zip([None, *spans], spans, strict=False):
        first, last = _words_in(words, span)
        if first > last:
            return f"{span}: expected a word there, found none"
        if first <= taken:
            how = "overlap" if before is not None and span.start < before.end else "share a word"
            return f"{before} and {span} {how}; a word has one label"
        tags[first : last + 1] = [f"B-{span.label}", *[f"I-{span.label}"] * (last - first)]
        taken = last
    return tags


def _words_in(words: np.ndarray, span: Span) -> tuple[int, int]:
    """Return the first and last word that the span has a character of."""
    first = int(np.searchsorted(words[:, 1], span.start, side="right"))
    return first, int(np.searchsorted(words[:, 0], span.end, side="left")) - 1


def _cuts_word(words: np.ndarray, span: Span) -> bool:
    first, last = _words_in(words, span)
    return bool(words[first, 0] < span.start or words[last, 1] > span.end)
