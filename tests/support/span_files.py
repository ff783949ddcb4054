"""Small question answering data in each supported file format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compress.spec.task import Files, TaskSpec

PLACES = ("Paris", "New York", "Rio de Janeiro")
Question = tuple[str, str, list[tuple[str, int]]]  # question, context, answers with their start positions


def questions(split: str, contexts: int = 12, *, impossible: bool = False) -> list[Question]:
    """Return three questions for each context; the third has no answer if `impossible`, and the first has two."""
    rows: list[Question] = []
    for number in range(contexts):
        place = PLACES[number % 3]
        context = f"In {split} {number}, Ada Lovelace saw {place} on day {number}."
        name, town = context.index("Ada Lovelace"), context.index(place)
        rows.append((f"Who saw {place}?", context, [("Ada Lovelace", name), ("Lovelace", name + 4)]))
        rows.append(("What did Ada see?", context, [(place, town)]))
        rows.append(("When was it?", context, [] if impossible else [(f"day {number}", context.index("day"))]))
    return rows


def squad(rows: Sequence[Question], *, version2: bool = False) -> str:
    """Return the JSON of SQuAD, with an article for every two contexts."""
    paragraphs: dict[str, list[dict[str, Any]]] = {}
    for number, (question, context, answers) in enumerate(rows):
        entry: dict[str, Any] = {"id": str(number), "question": question, "answers": hub_rows(answers)}
        if version2:
            entry |= {"is_impossible": not answers, "plausible_answers": hub_rows([("Ada", context.find("Ada"))])}
        paragraphs.setdefault(context, []).append(entry)
    listed = [{"context": context, "qas": qas} for context, qas in paragraphs.items()]
    articles = [{"title": "T", "paragraphs": listed[start : start + 2]} for start in range(0, len(listed), 2)]
    return json.dumps({"version": "v2.0", "data": articles})


def hub_rows(answers: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"text": text, "answer_start": start} for text, start in answers]


def records(rows: Sequence[Question], form: str) -> list[dict[str, Any]]:
    """Return rows whose `answers` are `columns`, a `list` of objects, or `places`, which have no text."""
    entries = []
    for question, context, answers in rows:
        value: Any = hub_rows(answers)
        if form == "columns":
            value = {"text": [text for text, _ in answers], "answer_start": [start for _, start in answers]}
        elif form == "places":
            value = [{"start": start, "end": start + len(text)} for text, start in answers]
        entries.append({"question": question, "context": context, "answers": value})
    return entries


def jsonl(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def written(folder: Path, train: str, dev: str, suffix: str = ".json") -> tuple[Path, Path]:
    paths = folder / f"asked{suffix}", folder / f"dev{suffix}"
    for path, content in zip(paths, (train, dev), strict=True):
        path.write_text(content, encoding="utf-8")
    return paths


def span_task(**fields: Any) -> TaskSpec:
    """Return a task of `asked.json` and `dev.json`, unless `fields` name other data."""
    all_fields = {
        "name": "asked",
        "kind": "span",
        "text": ("question", "context"),
        "label": "answers",
        "metrics": ("exact_match", "f1_span"),
        **fields,
    }
    if not {"files", "hub"} & all_fields.keys():
        all_fields["files"] = Files(train="asked.json", dev="dev.json")
    return TaskSpec(**all_fields)
