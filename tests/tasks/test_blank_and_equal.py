"""Blank lines, and scores that are all equal."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_files import refused, scores, task

from compress.errors import CompressError
from compress.tasks import load_training
from compress.tasks.reading.delimited import read_table


@pytest.mark.parametrize("quoting", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_blank_lines_are_no_rows_and_count_as_lines(here: Path, quoting: bool, end: str) -> None:
    lines = ["", "", "text;label", "a, b;pos", "", "c, d;neg", ";neg", "", "", ""]
    (here / "train.csv").write_text(end.join(lines), newline="")
    table = read_table(here / "train.csv", quoting=quoting)
    assert (table.columns, table.numbers) == ({"text": ["a, b", "c, d", ""], "label": ["pos", "neg", "neg"]}, [4, 6, 7])
    (here / "train.csv").write_text(end.join([*lines, "x"]), newline="")
    refused(task(quoting=quoting), here, r"train.csv: line 11: expected 2 fields, found 1$")
    (here / "train.csv").write_text(end.join(["", "text,text", "a,pos"]), newline="")
    refused(task(quoting=quoting), here, r"train.csv:2: two columns are named 'text'")


def test_a_quoted_empty_field_is_a_row(here: Path) -> None:
    (here / "one.csv").write_text('text\na\n""\n\nb\n')
    assert read_table(here / "one.csv").columns == {"text": ["a", "", "b"]}


def test_blank_lines_between_json_objects_are_no_rows(here: Path) -> None:
    (here / "dev.jsonl").write_text('\n{"text": "a", "label": "pos"}\n \r\n{"text": "b", "label": "neg"}\n\n')
    table = read_table(here / "dev.jsonl")
    assert (table.columns["text"], table.numbers) == (["a", "b"], [2, 4])
    (here / "dev.jsonl").write_text('{"text": "a", "label": "pos"}\n\n{"text": "b"}\n')
    refused(task(dev="dev.jsonl"), here, r"dev.jsonl: line 3: no key 'label'")


@pytest.mark.parametrize(
    ("rows", "same"),
    [("a,3\nb,3.0\nc,3\n", "all 3 texts have the score 3"), ("a,0.5\n", "the only text has the score 0.5")],
)
def test_scores_that_are_all_the_same_have_no_correlation(here: Path, rows: str, same: str) -> None:
    (here / "train.csv").write_text("text,label\n" + "".join(f"t{i},{i}\n" for i in range(20)))
    (here / "dev.csv").write_text("text,label\na,1\nb,2\n")
    (here / "same.csv").write_text("text,label\n" + rows)
    refused(
        scores(dev={"one": "dev.csv", "two": "same.csv"}), here, rf"same.csv: {same}; a correlation needs at least two$"
    )
    with pytest.raises(CompressError, match=rf"same.csv: {same}; a correlation needs"):
        load_training(scores(), here, None, here / "same.csv")


def test_a_tuning_split_without_a_correlation_is_refused(here: Path) -> None:
    (here / "train.csv").write_text("text,label\n" + "".join(f"t{i},{3 + (i == 0)}\n" for i in range(40)))
    (here / "dev.csv").write_text("text,label\na,1\nb,2\n")
    refused(
        scores(), here, r"train.csv: the 4 examples held out for tuning all have the score 3; name a file .* --tuning"
    )
    (here / "own.csv").write_text("text,label\na,1\nc,3\nd,3\n")
    with pytest.raises(CompressError, match=r"own.csv: its texts outside the reported splits all have the score 3;"):
        load_training(scores(), here, None, here / "own.csv")
    (here / "own.csv").write_text("text,label\na,1\nc,3\nd,2\n")
    assert load_training(scores(), here, None, here / "own.csv").tuning.labels.tolist() == [3, 2]


def test_columns_without_a_name_are_refused(here: Path) -> None:
    """Spreadsheets write empty columns so."""
    (here / "train.csv").write_text("text,label,,\na,pos,,\n")
    refused(task(), here, r"train.csv:1: two columns have no name; delete them, or name each, or name them all with")
