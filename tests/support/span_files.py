"""Small question answering data in each supported file format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compress.spec.task import Files, TaskSpec

PLACES = ("Paris", "New York", "Rio de Janeiro")
Asked = tuple[str, str, list[tuple[str, int]]]  # question, context, answers with their start positions


def questions(split: str, contexts: int = 12, *, impossible: bool = False) -> list[Asked]:
    """Return three questions for each context; the third has no answer if `impossible`, and the first has two."""
    made: list[Asked] = []
    for number in range(contexts):
        place = PLACES[number % 3]
        context = f"In {split} {number}, Ada Lovelace saw {place} on day {number}."
        name, town = context.index("Ada Lovelace"), context.index(place)
        made.append((f"Who saw {place}?", context, [("Ada Lovelace", name), ("Lovelace", name + 4)]))
        made.append(("What did Ada see?", context, [(place, town)]))
        made.append(("When was it?", context, [] if impossible else [(f"day {number}", context.index("day"))]))
    return made


def squad(rows: Sequence[Asked], *, version2: bool = False) -> str:
    """Return the JSON of SQuAD, with an article for every two contexts."""
    paragraphs: dict[str, list[dict[str, Any]]] = {}
    for number, (question, context, answers) in enumerate(rows):
        found: dict[str, Any] = {"id": str(number), "question": question, "answers": hub_rows(answers)}
        if version2:
            found |= {"is_impossible": not answers, "plausible_answers": hub_rows([("Ada", context.find("Ada"))])}
        paragraphs.setdefault(context, []).append(found)
    listed = [{"context": context, "qas": qas} for context, qas in paragraphs.items()]
    articles = [{"title": "T", "paragraphs": listed[start : start + 2]} for start in range(0, len(listed), 2)]
    return json.dumps({"version": "v2.0", "data": articles})


def hub_rows(answers: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"text": text, "answer_start": start} for text, start in answers]


def records(rows: Sequence[Asked], form: str) -> list[dict[str, Any]]:
    """Return rows whose `answers` are `columns`, a `list` of objects, or `places`, which have no text."""
    made = []
    for question, context, answers in rows:
        value: Any = hub_rows(answers)
        if form == "columns":
            value = {"text": [text for text, _ in answers], "answer_start": [start for _, start in answers]}
        elif form == "places":
            value = [{"start": start, "end": start + len(text)} for text, start in answers]
        made.append({"question": question, "context": context, "answers": value})
    return made


def jsonl(rows: Sequence[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def written(folder: Path, train: str, dev: str, suffix: str = ".json") -> tuple[Path, Path]:
    paths = folder / f"asked{suffix}", folder / f"dev{suffix}"
    for path, content in zip(paths, (train, dev), strict=True):
        path.write_text(content, encoding="utf-8")
    return paths


def span_task(**fields: Any) -> TaskSpec:
    """Return a task of `asked.json` and `dev.json`, unless `fields` name other data."""
    given = {
        "name": "asked",
        "kind": "span",
        "text": ("question", "context"),
        "label": "answers",
        "metrics": ("exact_match", "f1_span"),
        **fields,
    }
    if not {"files", "hub"} & given.keys():
        given["files"] = Files(train="asked.json", dev="dev.json")
    return TaskSpec(**given)
