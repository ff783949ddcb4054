"""Damaged task files and data files of every format: read completely, or refused without a traceback."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import yaml
from fuzzing import Case, any_value, check, damaged_bytes, damaged_document

from compress.tasks import fingerprint, load_reported, load_training, resolve_task

pytestmark = pytest.mark.end_to_end

SLICE, ALL = 150, 10_000
PAIR, LABELS = ["premise", "hypothesis"], ["no", "yes"]
QUESTION_FIRST = PAIR[::-1]  # the question, and the context that answers it
TASKS: dict[str, dict[str, Any]] = {
    "csv": {"text": ["premise"], "labels": LABELS, "metrics": ["accuracy", "f1"], "positive": "yes"},
    "tsv": {"text": PAIR, "metrics": ["matthews"], "files": {"quoting": False}},
    "jsonl": {"text": PAIR, "metrics": ["pearson", "spearman"], "kind": "regression", "label": "score"},
    "parquet": {"text": PAIR[::-1], "metrics": ["f1_macro"], "max_length": 32, "tuning_fraction": 0.2},
    "jsonl tags": {"text": ["tokens"], "label": "tags", "kind": "tagging", "metrics": ["entity_f1", "accuracy"]},
    "parquet tags": {"text": ["tokens"], "label": "tags", "kind": "tagging", "metrics": ["accuracy"]},
    "jsonl spans": {"text": ["premise"], "label": "spans", "kind": "tagging", "metrics": ["entity_f1"]},
    "jsonl answers": {
        "text": QUESTION_FIRST,
        "label": "answers",
        "kind": "span",
        "metrics": ["exact_match", "f1_span"],
    },
    "parquet answers": {"text": QUESTION_FIRST, "label": "columns", "kind": "span", "metrics": ["f1_span"]},
    "json": {"text": ["question", "context"], "label": "answers", "kind": "span", "metrics": ["exact_match"]},
    "conll": {"text": ["tokens"], "label": "tags", "kind": "tagging", "metrics": ["entity_f1"]},
    "ndjson": {"text": ["premise"], "labels": LABELS, "metrics": ["accuracy"], "tuning_examples": 3},
}
COLUMNS = (*PAIR, "label", "score", "tokens", "tags", "spans", "answers", "columns")


SPLITS = {"train": range(24), "dev": range(120, 126), "other": range(240, 264)}  # numbers of their examples


def rows(split: str) -> list[dict[str, Any]]:
    texts = ('the film is good, "truly" so', "l'été — 漢字 — is\u2028long", "a\u00a0story", "it is bad ; or not")
    return [
        {
            "premise": f"{texts[n % 4]} {n}",
            "hypothesis": texts[n % 3],
            "label": LABELS[n % 2],
            "score": n / 4,
            "tokens": [*texts[n % 4].split(" "), str(n)],
            "tags": ["B-ART" if place == n % 3 else "O" for place in range(len(texts[n % 4].split(" ")) + 1)],
            "answers": [{"text": "i", "answer_start": texts[n % 4].index("i")}] if n % 4 != 2 else [],
            "columns": {"text": ["i"], "answer_start": [texts[n % 4].index("i")]} if n % 4 != 2 else None,
            "spans": [{"start": 0, "end": 3, "label": "ART"}] if n % 2 else [],
        }
        for n in SPLITS[split]
    ]


def task(form: str) -> dict[str, Any]:
    suffix, own = form.split()[0], TASKS[form]
    files = {"train": f"train.{suffix}", "dev": {"dev": f"dev.{suffix}", "other": f"other.{suffix}"}}
    return {"name": "mine", "label": "label", **own, "files": {**files, **own.get("files", {})}}


def written(table: list[Any], suffix: str) -> bytes:
    """Return the table in this format; values that it cannot represent become text."""
    if suffix in ("jsonl", "ndjson"):
        return "\n".join(map(json.dumps, table)).encode()
    if suffix == "json":
        return json.dumps(table[0] if len(table) == 1 else squad(table)).encode()
    plain = [row if isinstance(row, dict) else {"premise": row} for row in table]
    if suffix == "conll":
        columns = ([row.get(name) for name in ("tokens", "tags")] for row in plain)
        lists = ([value if isinstance(value, list) else [value] for value in row] for row in columns)
        texts = ("".join(f"{word} {tag}\n" for word, tag in zip(*row, strict=False)) for row in lists)
        return "\n".join(texts).encode("utf-8", "surrogatepass")
    names = list(dict.fromkeys(name for row in plain for name in row)) or ["x"]
    if suffix == "parquet":
        return parquet({name: [row.get(name) for row in plain] for name in names})
    out = io.StringIO(newline="")
    dialect: dict[str, Any] = {"delimiter": "," if suffix == "csv" else "\t"}
    if suffix == "csv":
        writer = csv.writer(out, **dialect)
        writer.writerows([names, *([str(row.get(name)) for name in names] for row in plain)])
    else:
        out.write("\n".join("\t".join(map(str, line)) for line in [names, *([r.get(n) for n in names] for r in plain)]))
    return out.getvalue().encode("utf-8", "surrogatepass")


def squad(table: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rows as a SQuAD document."""
    questions = [
        {"question": row.get("hypothesis"), "answers": row.get("answers"), "id": n} for n, row in enumerate(table)
    ]
    contexts = [row.get("premise") for row in table]
    return {"data": [{"paragraphs": [{"context": c, "qas": [q]}]} for c, q in zip(contexts, questions, strict=True)]}


def parquet(columns: dict[str, list[Any]]) -> bytes:
    """Return a Parquet file; columns that the format cannot represent become text."""
    arrays = {ascii(name)[1:-1]: values for name, values in columns.items()}
    for name, values in arrays.items():
        try:
            one_file(pyarrow.table({"x": values}))
        except (pyarrow.ArrowException, OverflowError, UnicodeEncodeError, ValueError):
            arrays[name] = [ascii(value) for value in values]
    return one_file(pyarrow.table(arrays))


def one_file(table: pyarrow.Table) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()


def cases(folder: Path, first: int, count: int) -> Iterator[Case]:
    for number in range(first, first + count):
        rng = random.Random(f"tasks/{number}")
        form = rng.choice(list(TASKS))
        suffix = form.split()[0]
        document, tables = task(form), {split: rows(split) for split in SPLITS}
        what = rng.choice(("task", "table", "column", "bytes", "task bytes"))
        if suffix == "json" and what == "table":
            tables = {part: [squad(table)] for part, table in tables.items()}
        said, name = "", rng.choice(("train", "dev"))
        if what == "task":
            said, document = damaged_document(document, number)
        elif what == "table":
            said, tables[name] = damaged_document(tables[name], number)
        elif what == "column":
            said = column(tables[name], rng)
        contents = {
            part: written(table if isinstance(table, list) else [table], suffix) for part, table in tables.items()
        }
        text = json.dumps(document).encode() if rng.random() < 0.5 else as_yaml(document)
        if what == "bytes":
            said, contents[name] = damaged_bytes(contents[name], number)
        elif what == "task bytes":
            said, text = damaged_bytes(text, number)
        for part, content in contents.items():
            (folder / f"{part}.{suffix}").write_bytes(content)
        (folder / "mine.yaml").write_bytes(text)
        yield f"{number} {form} {what} {name} {said}", lambda: use(folder / "mine.yaml")


def as_yaml(document: Any) -> bytes:
    try:
        return yaml.safe_dump(document).encode()
    except (UnicodeEncodeError, yaml.YAMLError, RecursionError):  # not representable in YAML
        return json.dumps(document).encode()


def column(table: list[dict[str, Any]], rng: random.Random) -> str:
    """Set one value in every row."""
    name, value = rng.choice(COLUMNS), any_value(rng)
    for row in table:
        row[name] = value
    return f"{name} {value!r:.60}"


def use(file: Path) -> None:
    spec, folder = resolve_task(str(file))
    if spec.hub is not None:  # nothing may be fetched here
        fingerprint(spec, folder, None)
        return
    data, reported = load_training(spec, folder, None), load_reported(spec, folder, None)
    assert len(data.train)
    assert len(data.tuning)
    splits = (data.train, data.tuning, *reported.splits.values())
    assert all(isinstance(text, str) for split in splits for text in split.texts[0])


@pytest.mark.parametrize("form", TASKS)
def test_whole_tasks_are_read(tmp_path: Path, form: str) -> None:
    suffix = form.split()[0]
    for split in SPLITS:
        (tmp_path / f"{split}.{suffix}").write_bytes(written(rows(split), suffix))
    (tmp_path / "mine.yaml").write_bytes(as_yaml(task(form)))
    use(tmp_path / "mine.yaml")


def test_damaged_tasks_are_read_or_refused(tmp_path: Path) -> None:
    check(cases(tmp_path, 0, SLICE), SLICE)


@pytest.mark.slow
def test_many_damaged_tasks_are_read_or_refused(tmp_path: Path) -> None:
    check(cases(tmp_path, SLICE, ALL - SLICE), ALL - SLICE)
