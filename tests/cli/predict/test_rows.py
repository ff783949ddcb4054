"""`compress predict --input`: all rows of a file are checked, and their problems named together."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict_runs import predict

ROWS = ("a,0", '"b c,1', "c,0", "a b,1", 'b",0', "c,1", "a,0")  # the second to the fifth are one in quotes


def test_rows_that_lone_quotes_join_are_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("\n".join(["text,gold", *ROWS]) + "\n")
    done = predict(folder, "-i", path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "in.csv: line 3: a quoted field spans several lines that look like rows, such as 'c,0'" in done.stderr
    done = predict(folder, "-i", path, "--no-quoting")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1 + len(ROWS))


def test_a_text_of_several_lines_is_one_row(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text('text,gold\n"a\nb, c\nb, a\nc",0\nb,1\n')
    done = predict(folder, "-i", path, "-o", tmp_path / "out.jsonl")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.jsonl").read_text().count("\n") == 2


def test_unknown_labels_are_named_together(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("text,gold\na,0\n" + "b,x\n" * 3 + "b,y\nb,z\nb,w\na,0\n")
    done = predict(folder, "-i", path, "--label", "gold")
    assert (done.returncode, done.stdout) == (2, "")
    named = [f"line {line}: gold: unknown label {name!r}" for line, name in ((3, "x"), (6, "y"), (7, "z"))]
    assert all(words in done.stderr for words in named)
    assert done.stderr.endswith("; 6 such lines in all\n") and "'w'" not in done.stderr
    path.write_text("text,gold\na,0\nb,x\nb\n")
    assert "line 3: gold: unknown label 'x'" in predict(folder, "-i", path, "--label", "gold").stderr


@pytest.mark.parametrize("content", ['text,note\n "a, b", "c"\n', 'text, "note"\n"a, b",  "c"\n'])
def test_spaces_before_quotes_shift_no_columns(folder: Path, tmp_path: Path, content: str) -> None:
    path = tmp_path / "in.csv"
    path.write_text(content)
    done = predict(folder, "-i", path)
    assert done.stdout.splitlines()[1].startswith('"a, b",c,'), done.stderr
    path.write_text('text,note\na,x\na, "b\n')
    assert "in.csv:3: a quote after a space begins a field that does not end" in predict(folder, "-i", path).stderr
