"""`compress predict` with a tagger: entities as lines, as JSON and in a column."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from predict_runs import predict, refusal
from runtime_toys import describe
from tagger_toys import chain

from compress.runtime import Tagger

pytestmark = pytest.mark.end_to_end

SAYS = {"the": "B-PER", "guy": "I-PER", "in": "B-LOC", "so": "O", ",": "O"}
TEXTS = ["so the guy , in", "so so", "", "in\tthe"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    describe(tagger_folder := chain(tmp_path / "x", says=SAYS, scale=0.1), text_columns=["tokens"], max_length=24)
    return tagger_folder


def test_a_line_for_each_text(folder: Path) -> None:
    done = predict(folder, lines="\n".join(TEXTS))
    expected = [
        ", ".join(f"{one.text} ({one.label} {one.score:.4f})" for one in entities) or "-"
        for entities in Tagger(folder).predict(TEXTS)
    ]
    assert done.stdout.splitlines() == expected
    assert expected[0].startswith("the guy (PER ")
    assert expected[1:3] == ["-", "-"]
    assert (done.returncode, done.stderr) == (0, "")


def test_an_entity_over_lines_is_on_one(folder: Path) -> None:
    done = predict(folder, "the\n guy")
    assert done.stdout.startswith("the guy (PER ")


def test_json_lines_have_entities(folder: Path) -> None:
    done = predict(folder, "--json", *TEXTS[:2])
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["text"] == TEXTS[0]
    assert [(one["text"], one["label"], one["start"], one["end"]) for one in first["entities"]] == [
        ("the guy", "PER", 3, 10),
        ("in", "LOC", 13, 15),
    ]
    assert set(first["entities"][0]) == {"label", "score", "start", "end", "text"}
    assert (second["entities"], second["precision"], second["runtime"]) == ([], "fp32", "onnxruntime")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_rows_get_a_column_of_entities(folder: Path, tmp_path: Path, suffix: str) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / f"out{suffix}"
    rows = [{"id": number, "text": text} for number, text in enumerate(TEXTS)]
    path.write_text("\n".join(map(json.dumps, rows)))
    done = predict(folder, "-i", path, "-o", out, "--text", "text")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    lines = out.read_text().splitlines()
    if suffix == ".jsonl":
        predictions = [json.loads(line)["prediction"] for line in lines]
    else:
        table = csv.DictReader(lines, delimiter={".csv": ",", ".tsv": "\t"}[suffix])
        predictions = [json.loads(row["prediction"]) for row in table]
    expected = Tagger(folder).predict(TEXTS)
    assert [[(one["text"], one["label"], one["start"]) for one in each] for each in predictions] == [
        [(one.text, one.label, one.start) for one in each] for each in expected
    ]


def test_rows_may_have_lists_of_words(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"tokens": ["so", "the", "guy"]}) + "\n" + json.dumps({"tokens": "in"}) + "\n")
    done = predict(folder, "-i", path)
    first, second = map(json.loads, done.stdout.splitlines())
    assert [(one["text"], one["start"]) for one in first["prediction"]] == [("the guy", 3)]
    assert second["prediction"][0]["label"] == "LOC"


@pytest.mark.parametrize(
    ("row", "words", "expected"),
    [
        ({"tokens": ["a", 7]}, (), "in.jsonl: line 1: tokens: expected text, found int"),
        ({"tokens": {}}, (), "in.jsonl: line 1: tokens: expected text, found dict"),
        (
            {"tokens": ["a"]},
            ("--label", "tags"),
            "in.jsonl: line 1: no column 'tags'; name one of 'tokens' with --label",
        ),
        ({"tokens": ["a"], "tags": ["B-X"]}, ("--label", "tags"), "in.jsonl: line 1: word 1: unknown label 'B-X'"),
        (
            {"tokens": ["a"], "tags": ["O", "O"]},
            ("--label", "tags"),
            "line 1: expected a tag for each of 1 words, found 2",
        ),
        (
            {"tokens": ["a"], "tags": ["O"]},
            ("--label", "tags"),
            "all 1 words have the label 'O'; expected entities among them",
        ),
        ({"tokens": [], "tags": []}, ("--label", "tags"), "in.jsonl: tags: no text has a word"),
        ({"tokens": ["a"]}, ("--pair", "other"), "labels the words of one text; leave --pair out"),
        ({"tokens": ["a", ""]}, (), "in.jsonl: line 1: tokens: expected words, found an empty one"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, tmp_path: Path, row: object, words: tuple, expected: str) -> None:
    line = refusal(folder, tmp_path, row, *words)
    assert expected in line
    scored = f"the answers are in {tmp_path / 'out.jsonl'}" in line
    assert (
        (tmp_path / "out.jsonl").exists() == scored == expected.startswith(("all 1 words", "in.jsonl: tags: no text"))
    )


def test_a_pair_of_texts_is_refused(folder: Path) -> None:
    done = predict(folder, "a", "--pair", "b")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: --pair: {folder} labels the words of one text; leave --pair out\n"
