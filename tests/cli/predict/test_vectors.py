"""`compress predict` with a sentence encoder: vectors, cosines of pairs, and files of both."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from embedder_toys import WIDTH, averages
from predict_runs import predict
from runtime_toys import bag, describe

from compress.cli.predict.vectors import write_header
from compress.runtime import Embedder

pytestmark = pytest.mark.end_to_end

TEXTS = ["a short text", "", "some words", "it is cut then"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    embedder_folder = averages(tmp_path / "x")
    describe(embedder_folder, text_columns=["one", "other"], max_length=24, task={"kind": "embedding"})
    return embedder_folder


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """Check that the command was refused, and return its one line."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_text_prints_its_vector_and_a_pair_its_cosine(folder: Path) -> None:
    vectors = Embedder(folder).embed(TEXTS)
    done = predict(folder, *TEXTS[2:])
    np.testing.assert_allclose(
        [[float(number) for number in line.split(" ")] for line in done.stdout.splitlines()], vectors[2:], rtol=1e-5
    )
    done = predict(folder, TEXTS[0], "--pair", TEXTS[2])
    assert done.stdout == f"{vectors[0] @ vectors[2]:.4f}\n"


def test_lines_are_texts_and_those_with_a_tab_pairs(folder: Path) -> None:
    vectors = Embedder(folder).embed(TEXTS)
    done = predict(folder, "--json", lines=f"{TEXTS[0]}\n{TEXTS[0]}\t{TEXTS[3]}\n")
    first, second = map(json.loads, done.stdout.splitlines())
    np.testing.assert_allclose(first["vector"], vectors[0], atol=1e-7)
    assert second["cosine"] == pytest.approx(float(vectors[0] @ vectors[3]), abs=1e-6)
    assert second["text"] == [TEXTS[0], TEXTS[3]]
    assert (first["precision"], first["runtime"]) == ("fp32", "onnxruntime")


def rows_file(path: Path) -> Path:
    rows = [
        {"one": text, "other": other, "score": number}
        for number, (text, other) in enumerate(zip(TEXTS, TEXTS[::-1], strict=True))
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.mark.parametrize("rows", [0, 5, 10**9])
def test_the_header_has_the_same_size_whatever_the_number_of_rows(rows: int) -> None:
    file = io.BytesIO()
    write_header(file, rows, 384)
    assert file.tell() == 128


def test_vectors_of_a_column_go_to_a_numpy_file(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.npy"
    done = predict(folder, "-i", rows_file(tmp_path / "in.jsonl"), "-o", out, "--text", "one")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{out}: 4 vectors of {WIDTH}\n")
    vectors = np.load(out)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, Embedder(folder).embed(TEXTS), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "words"), [("out.npy", ()), ("out.jsonl", ("--pair", "other"))])
def test_the_bundles_first_column_is_read_if_none_is_named(
    folder: Path, tmp_path: Path, name: str, words: tuple[str, ...]
) -> None:
    rows = rows_file(tmp_path / "in.jsonl")
    for out, naming in ((tmp_path / name, ()), (tmp_path / f"named-{name}", ("--text", "one"))):
        done = predict(folder, "-i", rows, "-o", out, *words, *naming)
        assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"named-{name}").read_bytes()


def test_lines_of_a_text_file_get_a_vector_each(folder: Path, tmp_path: Path) -> None:
    out, path = tmp_path / "out.npy", tmp_path / "in.txt"
    path.write_text("\n".join([TEXTS[0], "", *TEXTS[1:]]) + "\n")
    done = predict(folder, "-i", path, "-o", out)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{out}: 5 vectors of {WIDTH}\n")
    expected = Embedder(folder).embed([TEXTS[0], "", *TEXTS[1:]])
    np.testing.assert_allclose(np.load(out), expected, rtol=0, atol=1e-6)


def test_lines_end_where_those_of_stdin_do(folder: Path, tmp_path: Path) -> None:
    texts, out, path = ["a short\rtext", "", "it is cut then"], tmp_path / "out.npy", tmp_path / "in.txt"
    path.write_bytes(b"a short\rtext\r\n\nit is cut then\r\r\n")
    assert predict(folder, "-i", path, "-o", out).stdout == f"{out}: 3 vectors of {WIDTH}\n"
    expected = Embedder(folder).embed(texts)
    np.testing.assert_allclose(np.load(out), expected, rtol=0, atol=1e-6)
    answers = predict(folder, "--json", lines=path.read_bytes().decode()).stdout.splitlines()
    assert [json.loads(answer)["text"] for answer in answers] == texts


def test_a_json_row_is_named_by_its_line_of_the_file(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text":\r"a"}\r\n\r\n{"text": 3}\r\n')
    assert "in.jsonl: line 3: text: expected text, found int" in error_line(
        predict(folder, "-i", path, "--text", "text")
    )


def test_rows_of_pairs_get_cosines_and_their_correlation(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = predict(folder, "-i", rows_file(tmp_path / "in.jsonl"), "-o", out, "--label", "score")
    vectors = Embedder(folder).embed(TEXTS)
    expected = (vectors * vectors[::-1]).sum(axis=1)
    with out.open() as file:
        cosines = [float(row["prediction"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(cosines, expected, atol=1e-6)
    assert done.stdout.startswith("4 pairs: spearman ")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_pairs_without_a_score_are_answered_and_counted(folder: Path, tmp_path: Path, suffix: str) -> None:
    rows = [(one, other, "" if i % 2 else i) for i, one in enumerate(TEXTS) for other in TEXTS[:2]]
    scored, path, out = tmp_path / "scored.csv", tmp_path / f"in{suffix}", tmp_path / "out.csv"
    for file, kept in ((scored, [row for row in rows if row[2] != ""]), (tmp_path / "in.csv", rows)):
        with file.open("w", newline="") as stream:
            csv.writer(stream).writerows([("one", "other", "score"), *kept])
    if suffix == ".jsonl":
        path.write_text(
            "\n".join(json.dumps({"one": a, "other": b, "score": None if s == "" else s}) for a, b, s in rows)
        )
    expected = predict(folder, "-i", scored, "-o", tmp_path / "scored.out.csv", "--label", "score")
    assert expected.stdout.startswith("4 pairs: spearman ")
    done = predict(folder, "-i", path, "-o", out, "--label", "score")
    assert done.returncode == 0
    assert done.stdout == f"{expected.stdout.strip()}; 4 of 8 pairs have no score, and are left out\n"
    with out.open() as file:
        assert len([float(row["prediction"]) for row in csv.DictReader(file)]) == len(rows)


@pytest.mark.parametrize(("score", "reason"), [("", "no pair has a score"), ("3", "all scores are 3")])
def test_scores_without_a_correlation_are_not_told_as_0(folder: Path, tmp_path: Path, score: str, reason: str) -> None:
    out = tmp_path / "out.csv"
    (tmp_path / "in.csv").write_text("one,other,score\n" + f"a,b,{score}\nc,d,{score}\n")
    done = predict(folder, "-i", tmp_path / "in.csv", "-o", out, "--label", "score")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: nothing can be scored: {reason}; the answers are in {out}\n"
    assert len(out.read_text().splitlines()) == 3


def test_rows_of_one_text_get_vectors(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = predict(folder, "-i", rows_file(tmp_path / "in.jsonl"), "-o", out, "--text", "other")
    assert (done.returncode, done.stderr) == (0, "")
    vectors = [json.loads(line)["prediction"] for line in out.read_text().splitlines()]
    np.testing.assert_allclose(vectors, Embedder(folder).embed(TEXTS[::-1]), atol=1e-7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "x.npy", "--text", "one", "--pair", "other"), "--pair: a .npy file holds the vectors of one column"),
        (("-o", "x.npy", "--text", "one", "--label", "score"), "--label: a .npy file holds the vectors of one column"),
        (("-o", "x.npy", "--text", "text"), "no column 'text'"),
        (("-o", "x.txt", "--text", "one"), "--output: expected a .csv, .tsv, .jsonl or .npy file, found x.txt"),
        (("--text", "one", "--label", "score"), "--label: cosines of pairs are scored, and 'one' is one text"),
    ],
)
def test_what_does_not_fit_is_refused(folder: Path, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    options = tuple(str(tmp_path / option) if option.startswith("x.") else option for option in options)
    assert message in error_line(predict(folder, "-i", rows_file(tmp_path / "in.jsonl"), *options))
    assert not list(tmp_path.glob("x.*"))


def test_a_numpy_file_that_is_there_is_kept(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.npy"
    out.write_text("mine")
    assert "exists already" in error_line(
        predict(folder, "-i", rows_file(tmp_path / "in.jsonl"), "-o", out, "--text", "one")
    )
    assert out.read_text() == "mine"


def test_a_file_without_rows_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text\n")
    assert "no examples" in error_line(predict(folder, "-i", tmp_path / "in.csv", "-o", tmp_path / "x.npy"))
    assert not (tmp_path / "x.npy").exists()


def test_others_have_no_vectors(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text\na text\n")
    done = predict(bag(tmp_path / "bag"), "-i", tmp_path / "in.csv", "-o", tmp_path / "x.npy")
    assert "gives no vectors; expected a .csv, .tsv or .jsonl file" in error_line(done)


@pytest.mark.parametrize(
    ("written", "hint"),
    [("1_0", ""), ("0,5", "; write '0.5'"), ("1,500", "; write '1500', or '1.500' if the comma is")],
)
def test_scores_are_read_as_in_training(folder: Path, tmp_path: Path, written: str, hint: str) -> None:
    (tmp_path / "in.csv").write_text(f'one,other,score\na,b,1.5\nc,d,"{written}"\n')
    done = predict(folder, "-i", tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--label", "score")
    assert f"in.csv: line 3: score: expected a finite number, found '{written}'{hint}" in error_line(done)
