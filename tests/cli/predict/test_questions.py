"""`compress predict` with a question answering model: answers as lines, as JSON and in columns."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from predict_runs import predict, refusal
from reader_toys import finder
from runtime_toys import describe

from compress.runtime import Reader

pytestmark = pytest.mark.end_to_end

PAIRS = [("who is it", "so it is the guy in that text"), ("where", "it is in"), ("what", "a short text"), ("who", "")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reader_folder = finder(tmp_path / "x")
    describe(
        reader_folder, task={"kind": "span", "unanswerable": True}, text_columns=["question", "context"], max_length=24
    )
    return reader_folder


def test_a_line_for_each_question(folder: Path) -> None:
    done = predict(folder, lines="\n".join("\t".join(pair) for pair in PAIRS))
    expected = [f"{one.answer or '-'}\t{one.score:.4f}" for one in Reader(folder).predict(PAIRS)]
    assert done.stdout.splitlines() == expected
    assert [line.split("\t")[0] for line in expected] == ["the guy", "in", "-", "-"]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_question_and_its_context_as_arguments(folder: Path) -> None:
    questions, contexts = zip(*PAIRS[:2], strict=True)
    done = predict(folder, *questions, *(word for context in contexts for word in ("--pair", context)))
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["the guy", "in"]
    assert predict(folder, "who", "--pair", "the\n guy").stdout.startswith("the guy\t")


def test_json_lines_have_the_place_of_the_answer(folder: Path) -> None:
    done = predict(folder, "--json", lines="\n".join("\t".join(pair) for pair in PAIRS[1:3]))
    first, none = map(json.loads, done.stdout.splitlines())
    assert first["text"] == [*PAIRS[1]]
    assert (first["answer"], first["start"], first["end"]) == ("in", 6, 8)
    assert first.keys() == {"text", "answer", "score", "start", "end", "precision", "runtime"}
    assert (none["answer"], none["start"], none["end"]) == ("", 0, 0)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_rows_get_a_column_of_answers(folder: Path, tmp_path: Path, suffix: str) -> None:
    path, out = tmp_path / "in.jsonl", tmp_path / f"out{suffix}"
    path.write_text("\n".join(json.dumps({"q": question, "context": context}) for question, context in PAIRS))
    done = predict(folder, "-i", path, "-o", out, "--text", "q", "--pair", "context")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    lines = out.read_text().splitlines()
    rows = list(csv.DictReader(lines)) if suffix == ".csv" else list(map(json.loads, lines))
    expected = Reader(folder).predict(PAIRS)
    assert [row["prediction"] for row in rows] == [one.answer for one in expected]
    assert [float(row["prediction_score"]) for row in rows] == [round(one.score, 6) for one in expected]


def squad(path: Path, *, names: bool = True) -> Path:
    """Write the pairs in one paragraph per article, without answers, like files with secret answers."""
    paragraphs = [
        {"context": context, "qas": [{"question": question, **({"id": f"q{place}"} if names else {})}]}
        for place, (question, context) in enumerate(PAIRS)
    ]
    path.write_text(json.dumps({"data": [{"paragraphs": [each]} for each in paragraphs]}))
    return path


@pytest.mark.parametrize("names", [True, False])
def test_the_questions_of_a_squad_file_are_answered(folder: Path, tmp_path: Path, names: bool) -> None:
    done = predict(folder, "-i", squad(tmp_path / "in.json", names=names))
    assert (done.returncode, done.stderr) == (0, "")
    expected = [
        {**({"id": f"q{place}"} if names else {}), "question": question, "context": context}
        | {"prediction": one.answer, "prediction_score": round(one.score, 6)}
        for place, ((question, context), one) in enumerate(zip(PAIRS, Reader(folder).predict(PAIRS), strict=True))
    ]
    assert list(map(json.loads, done.stdout.splitlines())) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"data": 3}', "in.json: expected a list `data`"),
        ('{"data": []}', "in.json: no questions in it"),
        (
            '{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": 7}]}]}]}',
            "in.json: question 1: question: expected text, found int",
        ),
    ],
)
def test_a_squad_file_of_another_form_is_one_line(folder: Path, tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "in.json").write_text(text)
    done = predict(folder, "-i", tmp_path / "in.json", "-o", tmp_path / "out.jsonl")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("row", "words", "expected"),
    [
        ({"question": "a", "context": 7}, (), "in.jsonl: line 1: context: expected text, found int"),
        ({"question": "a"}, (), "in.jsonl: line 1: no column 'context'"),
        ({"question": "a", "context": "b"}, ("--label", "answers"), "x answers questions; `compress verify` scores it"),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, tmp_path: Path, row: object, words: tuple, expected: str) -> None:
    assert expected in refusal(folder, tmp_path, row, *words)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_question_needs_its_context(folder: Path) -> None:
    done = predict(folder, "who is it")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == f"error: --pair: {folder} answers questions about texts; give the context of each with --pair\n"
    )
    done = predict(folder, lines="who is it\n")
    assert (done.returncode, done.stderr) == (
        2,
        "error: stdin:1: expected two texts separated by a tab; found 'who is it'\n",
    )
