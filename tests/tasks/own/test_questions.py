"""Question files without a task file: their columns and kind are detected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from span_files import jsonl, questions, records, squad, written

from compress.errors import CompressError
from compress.spec.source import load
from compress.spec.task import Files, TaskSpec
from compress.tasks import OwnFiles, fingerprint, load_training, own_task
from compress.tasks.own.template import files_in, guess_columns, task_yaml

TRAIN, DEV = questions("train", impossible=True), questions("dev", 4, impossible=True)
USUAL = ("question", "context", "answers")


def renamed(rows: list[dict[str, Any]], names: tuple[str, ...]) -> str:
    return jsonl([dict(zip(names, (row[name] for name in USUAL), strict=True)) for row in rows])


def own_of(folder: Path, form: str = "list", names: tuple[str, ...] = USUAL, **fields: Any) -> OwnFiles:
    train, dev = (renamed(records(rows, form), names) for rows in (TRAIN, DEV))
    return OwnFiles(*written(folder, train, dev, ".jsonl"), **fields)


def test_squads_files_need_no_options(tmp_path: Path) -> None:
    own = OwnFiles(*written(tmp_path, squad(TRAIN, version2=True), squad(DEV, version2=True)))
    spec, folder = own_task(own)
    assert (spec.name, spec.kind, spec.text, spec.label) == ("asked", "span", ("question", "context"), "answers")
    assert (spec.metrics, spec.labels, spec.max_length) == (("exact_match", "f1_span"), None, 384)
    data = load_training(spec, folder, None)
    assert len(data.train) + len(data.tuning) == len(TRAIN)


@pytest.mark.parametrize("form", ["columns", "list", "places"])
def test_records_need_no_options_where_their_columns_have_the_usual_names(tmp_path: Path, form: str) -> None:
    spec, _ = own_task(own_of(tmp_path, form))
    assert (spec.kind, spec.text, spec.label) == ("span", ("question", "context"), "answers")


@pytest.mark.parametrize(("suffix", "mark"), [(".csv", ","), (".tsv", "\t")])
def test_a_table_of_answers_as_text_is_refused_by_what_holds_them(tmp_path: Path, suffix: str, mark: str) -> None:
    content = "\n".join([mark.join(USUAL), *(mark.join((f"who {n}", f"Ada came {n}", "Ada")) for n in range(9))]) + "\n"
    own = OwnFiles(*written(tmp_path, content, content, suffix), kind="span")
    with pytest.raises(CompressError, match=r"line 2: answers: .* a \.csv or \.tsv cannot hold answers, a \.jsonl can"):
        load_training(*own_task(own), None)


@pytest.mark.parametrize(
    "columns", [{"label": "found"}, {"text": "question", "label": "found"}, {"pair": "context", "label": "found"}]
)
def test_one_column_of_another_name_is_named_alone_where_the_kind_is_said(
    tmp_path: Path, columns: dict[str, str]
) -> None:
    own = own_of(tmp_path, names=("question", "context", "found"), kind="span", **columns)
    spec, _ = own_task(own)
    assert (spec.text, spec.label) == (("question", "context"), "found")


def test_columns_of_other_names_are_named(tmp_path: Path) -> None:
    names = ("query", "text", "label")
    spec, folder = own_task(own_of(tmp_path, names=names, text="query", pair="text", label="label", max_length=64))
    assert (spec.kind, spec.text, spec.label, spec.max_length) == ("span", ("query", "text"), "label", 64)
    assert load_training(spec, folder, None).labels == ("start", "end")


def test_questions_without_contexts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=r"--pair: a span task has questions and contexts; name the column"):
        own_task(own_of(tmp_path, text="question", label="answers"))


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([("q", "c", ["a", "b"]), ("q", "c", ["a"])], "multilabel"),
        ([("q", "c", "a"), ("r", "c", "b")], "classification"),
    ],
)
def test_answers_that_are_no_spans_are_labels(tmp_path: Path, rows: list[Any], kind: str) -> None:
    content = jsonl([dict(zip(USUAL, row, strict=True)) for row in rows])
    own = OwnFiles(*written(tmp_path, content, content, ".jsonl"), text="question", pair="context", label="answers")
    assert own_task(own)[0].kind == kind


@pytest.mark.parametrize("columns", [False, True], ids=["objects", "an object of lists"])
def test_entities_are_no_answers(tmp_path: Path, columns: bool) -> None:
    """Nor in the hub's columns for lists of objects."""
    entity = {"start": 0, "end": 3, "label": "PER"}
    value = {name: [each] for name, each in entity.items()} if columns else [entity]
    rows = [{"text": f"Ada {n}", "entities": value} for n in range(10)]
    own = OwnFiles(*written(tmp_path, jsonl(rows[1:]), jsonl(rows[:1]), ".jsonl"))
    spec, folder = own_task(own)
    assert spec.kind == "tagging" and spec.labels == ("O", "B-PER", "I-PER")
    assert load_training(spec, folder, None).train.labels_words


@pytest.mark.parametrize("form", ["squad", "columns", "places"])
def test_init_writes_a_task_with_the_same_keys(tmp_path: Path, form: str) -> None:
    own = OwnFiles(*written(tmp_path, squad(TRAIN), squad(DEV))) if form == "squad" else own_of(tmp_path, form)
    file = tmp_path / "asked.yaml"
    text, *_ = task_yaml(guess_columns(own, []), file)
    file.write_text(text, encoding="utf-8")
    spec, folder = own_task(own)
    assert load(file, TaskSpec) == spec
    assert fingerprint(load(file, TaskSpec), tmp_path, None) == fingerprint(spec, folder, None)
    assert "kind: span  # " in text and "text: [question, context]" in text and "max_length: 384  # tokens; " in text
    assert "read in windows that overlap" in text and "labels:" not in text


def test_init_guesses_columns_of_a_data_set(tmp_path: Path) -> None:
    rows = [{"id": str(n), "title": "T", **row} for n, row in enumerate(records(TRAIN, "columns"))]
    own = guess_columns(OwnFiles(*written(tmp_path, jsonl(rows), jsonl(rows), ".jsonl")), [])
    assert (own.text, own.pair, own.label) == USUAL
    text, unread, _ = task_yaml(own, tmp_path / "t.yaml")
    assert "not used: 'id', 'title'" in text and unread == ["id", "title"]


def test_init_refuses_what_a_run_would(tmp_path: Path) -> None:
    question, context, _ = DEV[0]
    files = written(tmp_path, squad(TRAIN), squad([*DEV, (question, context, [("Ada", 0)])]))
    with pytest.raises(
        CompressError, match=r"dev\.json: question \d+ \(id '\d+'\): answers: answer 1: 'Ada' is not at"
    ):
        task_yaml(OwnFiles(*files), tmp_path / "t.yaml")


def test_files_are_found_by_their_names(tmp_path: Path) -> None:
    for name in ("train.json", "dev.json"):
        (tmp_path / name).write_text(squad(TRAIN), encoding="utf-8")
    assert files_in(tmp_path) == (tmp_path / "train.json", tmp_path / "dev.json")


def test_a_file_of_json_that_is_no_squad_is_refused(tmp_path: Path) -> None:
    files = written(tmp_path, json.dumps(records(TRAIN, "list")), squad(DEV))
    with pytest.raises(CompressError, match=r"asked\.json: expected a list `data`, as in "):
        own_task(OwnFiles(*files))


def test_a_task_file_that_says_no_length_has_that_of_its_kind() -> None:
    common: dict[str, Any] = {"name": "t", "label": "answers", "files": Files(train="train.jsonl", dev="dev.jsonl")}
    span = {**common, "kind": "span", "text": ("question", "context"), "metrics": ("f1_span",)}
    assert TaskSpec(**span).max_length == 384
    assert TaskSpec(**span, max_length=64).max_length == 64
    assert TaskSpec(**common, text=("text",), metrics=("accuracy",)).max_length == 128
