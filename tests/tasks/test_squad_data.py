"""Questions, contexts and answers in the formats of files and data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from span_files import Question, jsonl, questions, records, span_task, squad, written
from whole import count_near

from compress.errors import CompressError
from compress.spec.task import Files, Hub, TaskSpec
from compress.tasks import (
    TrainingData,
    fingerprint,
    load_reported,
    load_training,
    split_fingerprint,
)
from compress.tasks.reading.squad import read_squad

TRAIN, DEV = questions("train"), questions("dev", 4)
HARD_TRAIN, HARD_DEV = questions("train", impossible=True), questions("dev", 4, impossible=True)


def spans(rows: list[Question]) -> list[list[list[int]]]:
    return [[[start, start + len(text)] for text, start in answers] for _, _, answers in rows]


def check(spec: TaskSpec, folder: Path, train: list[Question], dev: list[Question]) -> TrainingData:
    data, reported = load_training(spec, folder, None), load_reported(spec, folder, None)
    split = reported.splits["dev"]
    assert split.texts == ([question for question, _, _ in dev], [context for _, context, _ in dev])
    assert [answers.tolist() for answers in split.labels] == spans(dev)
    assert all(answers.dtype == np.int32 and answers.ndim == 2 for answers in split.labels)
    assert split.labels_spans and not split.labels_words
    assert data.labels == reported.labels == ("start", "end")
    assert sorted([*data.train.texts[0], *data.tuning.texts[0]]) == sorted(question for question, _, _ in train)
    return data


@pytest.mark.parametrize("version2", [False, True])
def test_squad_files_are_read(tmp_path: Path, version2: bool) -> None:
    train, dev = (HARD_TRAIN, HARD_DEV) if version2 else (TRAIN, DEV)
    written(tmp_path, squad(train, version2=version2), squad(dev, version2=version2))
    assert check(span_task(), tmp_path, train, dev).notes == ()


@pytest.mark.parametrize("form", ["columns", "list", "places"])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_records_are_read(tmp_path: Path, form: str, suffix: str) -> None:
    files = Files(train=f"asked{suffix}", dev=f"dev{suffix}")
    if suffix == ".jsonl":
        written(tmp_path, jsonl(records(HARD_TRAIN, form)), jsonl(records(HARD_DEV, form)), suffix)
    else:
        for name, rows in (("asked", HARD_TRAIN), ("dev", HARD_DEV)):
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(records(rows, form)), tmp_path / f"{name}.parquet")
    check(span_task(files=files), tmp_path, HARD_TRAIN, HARD_DEV)


def test_a_data_set_of_the_hub_is_read(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    value = datasets.Value
    answers = {"text": datasets.List(value("string")), "answer_start": datasets.List(value("int32"))}
    features = datasets.Features({"question": value("string"), "context": value("string"), "answers": answers})
    rows = {"train": HARD_TRAIN, "validation": HARD_DEV}
    saved = {
        name: datasets.Dataset.from_list(records(part, "columns"), features=features) for name, part in rows.items()
    }
    datasets.DatasetDict(saved).save_to_disk(str(tmp_path / "set"))
    check(span_task(hub=Hub(path="set")), tmp_path, HARD_TRAIN, HARD_DEV)


def test_all_forms_of_one_split_are_the_same_examples(tmp_path: Path) -> None:
    fingerprints = set()
    for form in ("columns", "list", "places"):
        written(tmp_path, jsonl(records(TRAIN, form)), jsonl(records(DEV, form)), ".jsonl")
        data = load_reported(span_task(files=Files(train="asked.jsonl", dev="dev.jsonl")), tmp_path, None)
        fingerprints.add(split_fingerprint(data.splits["dev"]))
    assert len(fingerprints) == 1


def read_dev(folder: Path, context: str, answers: Any, label: str = "answers") -> list[list[int]]:
    good = records(DEV, "list")
    rows = [*good, {"question": "What?", "context": context, "answers": answers}]
    written(folder, jsonl(records(TRAIN, "list")), jsonl(rows), ".jsonl")
    data = load_reported(span_task(files=Files(train="asked.jsonl", dev="dev.jsonl")), folder, None)
    return data.splits["dev"].labels[-1].tolist()


CONTEXT = "Zo\u00eb \U0001f600 saw  Paris. Paris saw her."


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([{"text": "Paris", "answer_start": 11}], [[11, 16]]),  # characters, not bytes or UTF-16
        ([{"text": " Paris. ", "start": 10}], [[11, 17]]),  # spaces at its ends are not part of an answer
        ([{"start": 11, "end": 16}] * 3, [[11, 16]]),  # annotators agree
        ([{"text": "Paris", "start": 18, "end": 23}, {"text": "Paris", "start": 11}], [[18, 23], [11, 16]]),
        ([{"text": "Zo\u00eb", "answer_start": 0, "end": None}], [[0, 3]]),  # Parquet's filler for missing values
        ([], []),
        (None, []),
        ({"text": [], "answer_start": []}, []),
        ({}, []),
    ],
)
def test_answers_are_spans_of_characters(tmp_path: Path, answers: Any, expected: list[list[int]]) -> None:
    assert read_dev(tmp_path, CONTEXT, answers) == expected


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            [{"text": "Paris", "answer_start": 10}],
            r"dev\.jsonl: line 13: answers: answer 1: 'Paris' is not at character 10, where ' Pari' is; it is at 11",
        ),
        ([{"text": "Rome", "answer_start": 3}], "'Rome' is not at character 3, .*; the context does not contain it"),
        ([{"text": "Paris", "start": 11, "end": 15}], "'Paris' is not at character 11, where 'Pari' is"),
        ([{"text": "her.", "answer_start": 29}], "from 29 to 33: expected a part of the context's 32 characters"),
        ([{"text": "saw", "answer_start": -22}], "from -22 to -19: expected a part"),
        ([{"start": 5, "end": 3}], "from 5 to 3: expected a part"),
        ([{"start": 9, "end": 11}], "expected some text, found '  '; a question without an answer has an empty list"),
        ([{"text": "", "answer_start": 3}], "expected some text, found ''"),
        ([{"text": "Paris"}], r"answer 1: expected \[\{.*found \{'text': 'Paris'\}"),
        ([{"text": "Paris", "answer_start": "11"}], "answer 1: expected"),
        ([{"text": "Paris", "answer_start": True}], "answer 1: expected"),
        ([{"text": 3, "answer_start": 3}], "answer 1: expected"),
        ([{"text": "Paris", "answer_start": 11}, "Paris"], "answer 2: expected .* found 'Paris'"),
        ([[11, 16]], r"answer 1: expected .* found \[11, 16\]"),
        ({"text": ["Paris"], "answer_start": []}, "expected a list of answers, such as"),
        ({"text": "Paris", "answer_start": 11}, "expected a list of answers, such as"),
        ({"start": 3}, "expected a list of answers, such as"),
        ("Paris", "expected a list of answers, .* found 'Paris'; a .csv or .tsv cannot hold answers, a .jsonl can"),
        (11, "expected a list of answers, .* found 11"),
    ],
)  # fmt: skip
def test_answers_that_cannot_be_meant_are_refused_by_their_line(tmp_path: Path, answers: Any, message: str) -> None:
    with pytest.raises(CompressError, match=message):
        read_dev(tmp_path, CONTEXT, answers)


def test_a_context_that_is_no_text_is_refused_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=r"dev\.jsonl: line 13: context: expected text, found None"):
        read_dev(tmp_path, None, [])  # type: ignore[arg-type]


def test_a_split_without_any_answer_is_refused(tmp_path: Path) -> None:
    hidden = [(question, context, []) for question, context, _ in DEV]
    for train, dev, name in ((TRAIN, hidden, "dev"), (hidden, DEV, "asked")):
        written(tmp_path, squad(train), squad(dev))
        with pytest.raises(CompressError, match=rf"{name}\.json: none of its 12 questions has an answer"):
            load_training(span_task(), tmp_path, None)


def test_long_answers_are_allowed_and_noted(tmp_path: Path) -> None:
    context = " ".join(f"word{n}" for n in range(40))
    long, short = (context, 0), ("word3 word4", context.index("word3"))
    rows: list[Question] = [*TRAIN, ("Which?", context, [long]), ("And?", context, [long, short])]
    written(tmp_path, squad(rows), squad(DEV))
    notes = load_training(span_task(), tmp_path, None).notes
    assert notes == (
        "train: 1 of 38 questions have only answers of more than 30 words; a model's has at most 30 tokens",
    )


QAS = {"question": "q", "answers": [{"text": "c", "answer_start": 0}]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], r"dev\.json: expected a list `data`, as in .*, found \[\]; other records go in a \.jsonl file"),
        ({"rows": []}, r"expected a list `data`, as in .*, found \['rows'\]"),
        ({"data": [{"title": "T"}]}, r"dev\.json: data\[0\]: expected a list `paragraphs`, .* found \['title'\]"),
        ({"data": ["x"]}, r"data\[0\]: expected a list `paragraphs`, .* found 'x'"),
        ({"data": [{"paragraphs": [{"context": "c"}]}]}, r"data\[0\]\.paragraphs\[0\]: expected a list `qas`"),
        ({"data": [{"paragraphs": [{"context": "c", "qas": [3]}]}]}, r"paragraphs\[0\]\.qas\[0\]: expected a question"),
        (
            {"data": [{"paragraphs": [{"context": "c", "qas": [QAS, QAS | {"is_impossible": True}]}]}]},
            r"dev\.json: question 2: data\[0\]\.paragraphs\[0\]\.qas\[1\]: expected no answers, as `is_impossible` is true",
        ),
        (
            {"data": [{"paragraphs": [{"context": "c", "qas": [QAS | {"is_impossible": False, "answers": []}]}]}]},
            "question 1: .*expected an answer, as `is_impossible` is false, found none",
        ),
        ({"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "q"}]}]}]}, "question 1: .*list `answers`"),
        (
            {"data": [{"paragraphs": [{"context": "d", "qas": [QAS]}]}]},
            r"dev\.json: question 1: answers: answer 1: 'c' is not at character 0, where 'd' is",
        ),
        (
            {"data": [{"paragraphs": [{"context": "d", "qas": [QAS | {"id": "57a"}]}]}]},
            r"dev\.json: question 1 \(id '57a'\): answers: answer 1: 'c' is not at character 0",
        ),
        ({"data": [{"paragraphs": [{"context": "c", "qas": [QAS | {"question": 3}]}]}]}, "question 1: question: expected text"),
        ({"data": []}, r"dev\.json: no questions in it"),
    ],
)  # fmt: skip
def test_files_of_another_form_are_refused(tmp_path: Path, document: Any, message: str) -> None:
    written(tmp_path, squad(TRAIN), json.dumps(document))
    with pytest.raises(CompressError, match=message):
        load_training(span_task(), tmp_path, None)


def test_json_lines_with_the_wrong_suffix_are_told_apart(tmp_path: Path) -> None:
    written(tmp_path, squad(TRAIN), jsonl(records(DEV, "list")))
    with pytest.raises(CompressError, match=r"dev\.json: not JSON: .*; a file of one object per line ends in \.jsonl"):
        load_training(span_task(), tmp_path, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": ("context",)}, "`text` of a span task is two columns, of questions and of contexts, found"),
        ({"labels": ("start", "end")}, "a span task has no `labels`"),
        ({"positive": "start"}, "so no `positive` one"),
        ({"label": ("a", "b")}, "`label` of a span task is one column"),
        ({"metrics": ("f1",)}, r"metrics \['f1'\] do not fit kind `span`"),
        ({"kind": "classification", "metrics": ("exact_match",)}, "do not fit kind `classification`"),
    ],
)
def test_a_task_that_cannot_be_meant_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        span_task(**fields)


def test_the_tuning_split_parts_no_context(tmp_path: Path) -> None:
    rows = questions("train", 100, impossible=True)
    written(tmp_path, squad(rows, version2=True), squad(HARD_DEV, version2=True))
    data = load_training(span_task(), tmp_path, None)
    held, kept = set(data.tuning.texts[1]), set(data.train.texts[1])
    assert not held & kept and len(held) == 10 and len(data.tuning) == 30
    assert sum(len(answers) == 0 for answers in data.tuning.labels) == 10  # a third, as in all
    reordered = [row for context in sorted(held | kept, reverse=True) for row in rows if row[1] == context]
    written(tmp_path, squad(reordered, version2=True), squad(HARD_DEV, version2=True))
    assert set(load_training(span_task(), tmp_path, None).tuning.texts[1]) == held


def test_few_contexts_give_the_smallest_and_one_gives_none(tmp_path: Path) -> None:
    rows = [*questions("train", 3), ("Who?", "Ada did.", [("Ada", 0)])]
    written(tmp_path, squad(rows), squad(DEV))
    assert set(load_training(span_task(tuning_fraction=0.01), tmp_path, None).tuning.texts[1]) == {"Ada did."}
    written(tmp_path, squad(questions("train", 1)), squad(DEV))
    with pytest.raises(CompressError, match=r"3 examples are too few .*; expected at least two different contexts"):
        load_training(span_task(), tmp_path, None)


def test_questions_are_near_to_those_on_their_context_alone(tmp_path: Path) -> None:
    other = ("What did Ada see?", "Nothing of the kind.", [("Nothing", 0)])
    again = ("Which town?", TRAIN[0][1].upper(), [("PARIS", TRAIN[0][1].upper().index("PARIS"))])
    written(tmp_path, squad(TRAIN), squad([*DEV[:3], other, again]))
    data, reported = load_training(span_task(), tmp_path, None), load_reported(span_task(), tmp_path, None)
    whole = load_reported(span_task(files=Files(train="dev.json", dev="asked.json")), tmp_path, None).splits["dev"]
    assert count_near([reported.splits["dev"], data.tuning], whole) == [1, len(data.tuning)]


def test_the_fingerprint_changes_with_an_answer_alone(tmp_path: Path) -> None:
    written(tmp_path, squad(TRAIN), squad(DEV))
    before = fingerprint(span_task(), tmp_path, None), load_reported(span_task(), tmp_path, None).splits["dev"]
    question, context, answers = DEV[1]
    written(
        tmp_path,
        squad(TRAIN),
        squad([DEV[0], (question, context, [*answers, ("Ada", context.index("Ada"))]), *DEV[2:]]),
    )
    after = fingerprint(span_task(), tmp_path, None), load_reported(span_task(), tmp_path, None).splits["dev"]
    assert before[0] != after[0] and split_fingerprint(before[1]) != split_fingerprint(after[1])


@pytest.mark.parametrize(
    ("text", "message"), [(" \n", "empty file; expected questions"), ('{"data": []}', "no questions in it")]
)
def test_a_file_without_questions(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "train.json"
    path.write_text(text)
    with pytest.raises(CompressError, match=rf"train\.json: {message}"):
        read_squad(path)
