"""Convert answers, in any form that files and data sets use, to character spans in each question's context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from ...errors import brief
from ...runtime.words import word_spans
from ...spec.task import TaskSpec
from .columns import Rows
from .tables import refuse

QUESTION, CONTEXT, ANSWERS = "question", "context", "answers"  # usual column names
FORMS = '[{"text": "Paris", "answer_start": 12}] or {"text": ["Paris"], "answer_start": [12]}'
LONG = 30  # words; no model's answer has more tokens
_FIELDS = ("text", "answer_start", "start", "end")

Span = tuple[int, int]  # start and end in characters of the context, the end exclusive


def are_answers(values: Sequence[Any]) -> bool:
    """Whether a column holds answers: most of its list items have a position, with a text or an end, and no label like entities."""
    if any(isinstance(value, dict) and "label" in value for value in values):  # the hub's format for entities
        return False
    parts = [isinstance(part, dict) and _may_be_answer(part) for value in values for part in _answer_list(value)]
    return 2 * sum(parts) > len(parts)


def parse_answers(spec: TaskSpec, rows: Rows) -> Rows:
    """Return `rows` with labels as lists of distinct `Span`, in order, without spaces at their ends. Raises `CompressError`, with line
    numbers, for values that are not answers, and for texts that are not at their position."""
    contexts, column, label = rows.texts[1], spec.text[1], str(spec.label)
    labels, problems = [], []
    for number, context, value in zip(rows.numbers, contexts, rows.labels, strict=True):
        spans = _spans(context, value, column, label)
        if isinstance(spans, str):
            problems.append((number, spans))
        else:
            labels.append(spans)
    refuse(rows.place, rows.unit, problems)
    return replace(rows, labels=labels, notes=(*rows.notes, *_long(contexts, labels)))


def _spans(context: Any, value: Any, column: str, label: str) -> list[Span] | str:
    """Return the spans of one question, or what is wrong with them."""
    if not isinstance(context, str):
        return f"{column}: expected text, found {brief(context)}"
    if value is not None and not isinstance(value, list | dict):
        hint = "; a .csv or .tsv cannot hold answers, a .jsonl can" if isinstance(value, str) else ""
        return f"{label}: expected a list of answers, such as {FORMS}, found {brief(value)}{hint}"
    parts = _answer_list(value)
    if isinstance(value, dict) and value and not parts and any(value.values()):
        return f"{label}: expected a list of answers, such as {FORMS}, found {brief(value)}"
    spans: dict[Span, None] = {}
    for index, part in enumerate(parts, start=1):
        span = _span(context, part)
        if isinstance(span, str):
            return f"{label}: answer {index}: {span}"
        spans[span] = None
    return list(spans)


def _answer_list(value: Any) -> list[Any]:
    """Return the answers of a question, one by one; [] for a value that is not a list, or has lists of different lengths."""
    if isinstance(value, dict):  # the hub's format for lists of objects
        columns = {name: value[name] for name in _FIELDS if value.get(name) is not None}
        even = all(isinstance(part, list) for part in columns.values()) and len({*map(len, columns.values())}) == 1
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] if even else []
    return value if isinstance(value, list) else []


def _may_be_answer(part: dict[str, Any]) -> bool:
    return "label" not in part and ("answer_start" in part or ("start" in part and ("text" in part or "end" in part)))


def _span(context: str, part: Any) -> Span | str:
    """Return the span of an answer, or what is wrong with it."""
    fields = part if isinstance(part, dict) else {}
    text, end = fields.get("text"), fields.get("end")
    start = fields.get("start") if fields.get("answer_start") is None else fields.get("answer_start")
    if end is None and isinstance(text, str) and _is_place(start):
        end = start + len(text)
    if not _is_place(start) or not _is_place(end) or not (text is None or isinstance(text, str)):
        return f"expected {FORMS}, found {brief(part)}"
    if not 0 <= start <= end <= len(context):
        return f"from {start} to {end}: expected a part of the context's {len(context):,} characters"
    excerpt = context[start:end]
    if text is not None and excerpt != text:
        return f"{brief(text)} is not at character {start}{_location_hint(context, text, excerpt)}"
    if not excerpt.strip():
        return f"expected some text, found {brief(excerpt)}; a question without an answer has an empty list"
    return start + len(excerpt) - len(excerpt.lstrip()), end - len(excerpt) + len(excerpt.rstrip())


def _is_place(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _location_hint(context: str, text: str, excerpt: str) -> str:
    place = context.find(text)
    return f", where {brief(excerpt)} is" + (
        f"; it is at {place}" if place >= 0 else "; the context does not contain it"
    )


def _long(contexts: Sequence[str], labels: Sequence[Sequence[Span]]) -> list[str]:
    """Return a note on questions that no model answer can match."""
    answerable = [(context, spans) for context, spans in zip(contexts, labels, strict=True) if spans]
    long = sum(all(_count_words(context[start:end]) > LONG for start, end in spans) for context, spans in answerable)
    if not long:
        return []
    return [
        f"{long:,} of {len(answerable):,} questions have only answers of more than {LONG} words; a model's has at "
        f"most {LONG} tokens"
    ]


def _count_words(text: str) -> int:
    return len(word_spans(text)) if len(text) > LONG else 0
