"""`compress predict` refuses what it cannot read, write or score: in one line, before it answers anything."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from predict_runs import predict
from runtime_toys import bag

from compress.cli.predict.rows import Row, Writer
from compress.errors import CompressError


@pytest.mark.parametrize(
    ("content", "words", "expected"),
    [
        ("text\na\n", ("--text", "txet"), "in.csv: no column 'txet'; did you mean `text`?"),
        ("text\na\na,b\n", ("--text", "text"), "in.csv: line 3: expected 1 fields, found 2"),
        (
            "text,prediction\na,b\n",
            ("--text", "text"),
            "in.csv: has a column 'prediction', which is also the name of an added column",
        ),
        (
            "text,gold\na,nobody\n",
            ("--text", "text", "--label", "gold"),
            "in.csv: line 2: gold: unknown label 'nobody'; known: ",
        ),
        ("", (), "in.csv: empty file"),
        ("\n\n", (), "in.csv: empty file"),
        ("\nid,text,id\n1,a,2\n", (), "in.csv: line 2: two columns are named 'id'; rename one"),
        ('text\n"a\n', ("--text", "text"), "check the quotes"),
        ("text,,\na,b,c\n", (), "in.csv: line 1: two columns have no name; delete them, or name each"),
        ("text\na\n", ("more",), "--input names the texts, and TEXT gives others"),
        ("text\na\n", ("--json",), "--json: a file is answered in its own form; give --output FILE.jsonl for JSON\n"),
        ("id,text,id\n1,a,2\n", (), "in.csv: line 1: two columns are named 'id'; rename one"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_half_written_is_kept(
    folder: Path, tmp_path: Path, content: str, words: tuple[str, ...], expected: str
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(content)
    done = predict(folder, *words, "-i", path, "-o", out)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "content", "words", "expected"),
    [
        ("in.jsonl", '{"text": "a"}\n{"text": "b", "id": 1}\n', (), "line 2: key 'id' is not in every row"),
        ("in.jsonl", '{"text": "a"}\n{"text": "b", "text": "c"}\n', (), "line 2: two keys are named 'text'; rename one"),
        ("in.jsonl", '{"text": "a"}\n{"text": "b", "id": -1e400}\n', (), "line 2: the number -1e400 is too large"),
        ("in.jsonl", '{"text": "a", "id": "\\ud800"}\n', (), "line 1: expected text that can be written in utf-8"),
        ("in.jsonl", '{"text": "a"}\n{"text": "\\ud800"}\n', (), "in.jsonl: line 2: text: expected Unicode text"),
        ("in.tsv", 'text\tid\n"a\t1\nb\t2\nc"\t3\n', (), "line 4: a quoted field spans several rows"),
        (
            "in.jsonl", '{"text": "a", "gold": "0"}\n{"text": "b"}\n' + '{"text": "c", "gold": "0"}\n' * 9,
            ("--label", "gold"), "line 2: no column 'gold'",
        ),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_told_by_their_line(
    folder: Path, tmp_path: Path, name: str, content: str, words: tuple[str, ...], expected: str
) -> None:
    path, out = tmp_path / name, tmp_path / "out.csv"
    path.write_text(content)
    done = predict(folder, "-i", path, "-o", out, *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert expected in done.stderr
    assert not out.exists()


def test_options_of_a_file_without_one_and_pairs_of_piped_lines(folder: Path) -> None:
    assert "--label needs a file: expected --input FILE" in predict(folder, "a", "--label", "gold").stderr
    assert "--pair: a piped line holds both texts, separated by a tab" in predict(folder, "--pair", "b").stderr


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("T2.CSV", "give --input T2.CSV"),
        ("x.parquet", "as .csv or .jsonl with --input"),
        ("X.Parquet", ".csv or .jsonl"),
    ],
)
def test_files_of_data_are_known_by_any_suffix_that_they_have(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, remedy: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("text\na\n")
    done = predict(folder, "a", name)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{name}: is a file" in done.stderr and remedy in done.stderr


def test_a_plain_text_file_is_refused_with_the_command_that_answers_its_lines(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "my reviews.txt"
    path.write_text("a b\nc\n")
    done = predict(folder, "--input", path)
    assert (done.returncode, done.stdout) == (2, "")
    expected, _, command = done.stderr.partition("; to answer its lines, run: ")
    assert expected.endswith("--input: expected a .csv, .tsv or .jsonl file, found my reviews.txt")
    _, _, bundle, sign, file = shlex.split(command)
    assert (bundle, sign, file) == (str(folder), "<", str(path))
    _, _, command = predict(folder, "--input", path, "--json").stderr.partition(
        "; to answer its lines one by one, run: "
    )
    assert shlex.split(command)[1:] == ["predict", "--json", str(folder), "<", str(path)]


def test_a_gold_label_that_only_looks_like_a_known_one_is_shown_by_its_characters(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    names = {**config["id2label"], "0": "\xe9t\xe9"}
    (folder / "config.json").write_text(json.dumps(config | {"id2label": names, "label2id": {}}))
    (tmp_path / "in.csv").write_text("text,gold\na,e\u0301te\u0301\n", encoding="utf-8")
    done = predict(folder, "-i", tmp_path / "in.csv", "--label", "gold")
    assert r"gold: unknown label 'e\u0301te\u0301': it looks like '\xe9t\xe9', and its characters" in done.stderr


def test_a_file_with_a_header_alone_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("review,stars\n")
    done = predict(folder, "--input", tmp_path / "empty.csv", "--text", "review", "-o", tmp_path / "out.csv")
    assert done.returncode == 2
    assert "no examples" in done.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("columns", "content", "expected"),
    [
        ("text", "a b,0\nc,1\n", "in.csv: line 1: expected 1 fields, found 2"),
        ("text,gold", "\ntext,gold\na b,0\n", "in.csv: line 2: has the names of --columns; leave --columns out"),
        ("text,gold", '\ufeff"text", gold\na b,0\n', "in.csv: line 1: has the names of --columns"),
        ("text,gold", "Gold,Text\n0,a b\n", "in.csv: line 1: has the names of --columns"),
    ],
)
def test_names_for_a_file_with_other_columns_or_a_header_are_refused(
    folder: Path, tmp_path: Path, columns: str, content: str, expected: str
) -> None:
    path = tmp_path / "in.csv"
    path.write_text(content, encoding="utf-8")
    done = predict(folder, "-i", path, "--columns", columns, "--text", "text")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr


def test_an_answer_that_takes_quotes_is_refused_where_there_are_none(tmp_path: Path) -> None:
    writer = Writer(io.StringIO(), ".tsv", quoting=False)
    with pytest.raises(
        CompressError, match=r"in\.tsv: line 2: 'prediction' has a '\\t' or a line end.* --output FILE\.jsonl"
    ):
        writer.write(Row("in.tsv: line 2", {"text": 'a "b', "prediction": "one\ttwo"}, "in.tsv", 2))


def test_a_checkpoint_is_told_how_bundles_are_made(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    done = predict(tmp_path, "good")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "model.onnx" in done.stderr and "; `compress ship` makes bundles" in done.stderr


def test_a_run_is_not_taken_for_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{}")
    done = predict(tmp_path, "good")
    assert done.returncode == 2
    assert "compress ship" in done.stderr


@pytest.mark.parametrize(
    ("name", "good", "bad", "words", "expected"),
    [
        ("in.csv", "a b,0", "c,nobody", ("--label", "gold"), "line 602: gold: unknown label 'nobody'"),
        ("in.csv", "a b,0", "c", (), "line 602: expected 2 fields, found 1"),
        ("in.jsonl", '{"text": "a", "gold": 0}', '{"text": "c"}', ("--label", "gold"), "line 601: no column 'gold'"),
        ("in.jsonl", '{"text": "a", "id": 0}', '{"text": "c"}', ("-o", "out.csv"), "line 601: key 'id' is not in"),
        ("in.jsonl", '{"text": "a"}', '{"text": "c", "prediction": 1}', (), "line 601: has a column 'prediction'"),
    ],
)
def test_the_last_row_is_checked_before_the_first_is_answered(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    good: str,
    bad: str,
    words: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    header = ["text,gold"] if name == "in.csv" else []
    Path(name).write_text("\n".join([*header, *[good] * 600, bad]) + "\n")
    done = predict(folder, "-i", name, *words)  # without a file of answers, those of earlier rows would be on stdout
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert expected in done.stderr
    assert not Path("out.csv").exists()


def test_a_pipe_is_read_once_and_its_labels_before_the_answers_of_their_rows(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    os.mkfifo(path)
    good = json.dumps({"text": "a b", "gold": 0})
    bad = json.dumps({"text": "c", "gold": "nobody"})
    for last, code, answers in ((good, 0, 258), (bad, 2, 257)):
        lines = "\n".join([*[good] * 257, last])
        writer = threading.Thread(target=path.write_text, args=(lines,))
        writer.start()
        done = predict(folder, "-i", path, "--label", "gold")
        writer.join()
        assert (done.returncode, done.stdout.count("\n")) == (code, answers)
        assert ("258 texts: accuracy" if code == 0 else "line 258: gold: unknown label 'nobody'") in done.stderr


@pytest.mark.parametrize(
    ("closed", "arguments", "expected"),
    [
        ("0", (), "error: stdin is closed; give texts, or a file with --input"),
        ("1", ("a text",), "error: stdout is closed; open it"),
        ("0", ("a text",), None),
    ],
)
def test_streams_that_were_closed_are_named(
    folder: Path, closed: str, arguments: tuple[str, ...], expected: str | None
):
    command = shlex.join([sys.executable, "-m", "compress", "predict", str(folder), *arguments])
    ended = subprocess.run(["sh", "-c", f"exec {closed}>&-; {command}"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == (2 if expected else 0), ended.stderr
    assert "Traceback" not in ended.stderr and (expected is None or expected in ended.stderr)


@pytest.mark.parametrize(
    ("encoding", "words", "label", "answers", "character"),
    [
        ("ascii", ("--json", "the plain film", "日本"), "", 1, "\\u65e5"),
        ("latin-1", ("--json", "the plain film", "日本"), "", 1, "\\u65e5"),
        ("ascii", ("a b",), " é", 0, "\\xe9"),
    ],
)
def test_a_stdout_that_cannot_hold_an_answer_refuses_it_in_one_line(
    tmp_path: Path, encoding: str, words: tuple[str, ...], label: str, answers: int, character: str
) -> None:
    """An answer is data: neither its text nor its label is spelt out as signs of tables are."""
    folder = bag(tmp_path / "bag")
    config = json.loads((folder / "config.json").read_text())
    names = {key: f"{name}{label}" for key, name in config["id2label"].items()}
    (folder / "config.json").write_text(json.dumps(config | {"id2label": names}))
    command = [sys.executable, "-m", "compress", "predict", str(folder), *words]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=120, check=False)
    assert (done.returncode, done.stdout.count("\n")) == (2, answers), done.stderr
    assert done.stderr == (
        f"error: stdout: expected text that can be written in {encoding}, found {character}; set PYTHONIOENCODING=utf-8\n"
    )
