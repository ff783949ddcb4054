"""Small data of words with labels, in each supported file format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from compress.spec.task import Files, TaskSpec
from compress.tasks import ReportedData, TrainingData, load_reported, load_training

PEOPLE, PLACES = ("Ada", "Grace Hopper", "Alan Mathison Turing"), ("Paris", "New York")


def sentences(split: str, count: int = 30) -> list[tuple[list[str], list[str]]]:
    """Return words and IOB2 tags; every third text has no entity."""
    rows = []
    for number in range(count):
        person, place = PEOPLE[number % 3].split(), PLACES[number % 2].split()
        words = [split, f"{number}", ":", *person, "saw", *place, "."]
        tags = ["O", "O", "O", *marked("PER", len(person)), "O", *marked("LOC", len(place)), "O"]
        rows.append((words, ["O"] * len(words) if number % 3 == 2 else tags))
    return rows


def marked(kind: str, words: int) -> list[str]:
    return [f"B-{kind}", *[f"I-{kind}"] * (words - 1)]


def conll(texts: list[tuple[list[str], list[str]]], mark: str = "\t") -> str:
    return "\n".join("".join(f"{word}{mark}{tag}\n" for word, tag in zip(*text, strict=True)) for text in texts)


def jsonl(texts: list[Any], keys: tuple[str, ...] = ("tokens", "tags")) -> str:
    return "".join(json.dumps(dict(zip(keys, text, strict=True))) + "\n" for text in texts)


def csv_lists(texts: list[Any], names: tuple[str, ...] = ("tokens", "tags"), mark: str = ",") -> str:
    """Return a CSV whose columns are JSON lists."""
    file = io.StringIO()
    writer = csv.writer(file, delimiter=mark, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([map(json.dumps, text) for text in texts])
    return file.getvalue()


def written(folder: Path, train: str, dev: str, suffix: str = ".conll") -> tuple[Path, Path]:
    paths = folder / f"names{suffix}", folder / f"dev{suffix}"
    for path, content in zip(paths, (train, dev), strict=True):
        path.write_text(content, encoding="utf-8")
    return paths


def tagging(**fields: Any) -> TaskSpec:
    """Return a task of `names.conll` and `dev.conll`, unless `fields` name other data."""
    all_fields = {
        "name": "names",
        "kind": "tagging",
        "text": ("tokens",),
        "label": "tags",
        "metrics": ("entity_f1",),
        **fields,
    }
    if not {"files", "hub"} & all_fields.keys():
        all_fields["files"] = Files(train="names.conll", dev="dev.conll")
    return TaskSpec(**all_fields)


def read(folder: Path, **fields: Any) -> tuple[TrainingData, ReportedData]:
    spec = tagging(**fields)
    return load_training(spec, folder, None), load_reported(spec, folder, None)


def dev_words(data: ReportedData) -> list[list[tuple[str, str]]]:
    """Return each dev text's words with their labels."""
    split = data.splits["dev"]
    return [
        [(text[start:end], data.labels[label]) for label, start, end in words]
        for text, words in zip(split.texts[0], split.labels, strict=True)
    ]


def others(*tags: str, word: str = "a") -> list[tuple[list[str], list[str]]]:
    return [([f"{word}{number}", "b"], [tags[number % len(tags)], tags[-1]]) for number in range(40)]
