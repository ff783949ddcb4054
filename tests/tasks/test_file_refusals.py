"""A user's own files: the one-line error for each kind of bad file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from task_files import refused, scores, task

from compress.errors import CompressError
from compress.tasks import OwnFiles, fingerprint, load_reported, own_task
from compress.tasks.own.template import guess_columns


def test_missing_file(here: Path) -> None:
    refused(task(train="no.csv"), here, r"no\.csv: no such file$")
    with pytest.raises(CompressError, match=r"no\.csv: no such file"):
        fingerprint(task(train="no.csv"), here, None)
    refused(task(train="no.parquet"), here, r"no\.parquet: no such file$")
    (here / "folder.csv").mkdir()
    refused(task(train="folder.csv"), here, r"folder\.csv: expected a file of examples, found a folder$")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".json", ".conll"])
def test_a_pipe_is_refused_before_it_is_opened(here: Path, suffix: str) -> None:
    pipe = here / f"pipe{suffix}"
    os.mkfifo(pipe)
    for train, dev in ((pipe.name, "dev.csv"), ("train.csv", pipe.name)):
        refused(task(train, dev), here, rf"pipe\{suffix}: expected a file.*, found a pipe$")
        with pytest.raises(CompressError, match="found a pipe"):
            fingerprint(task(train, dev), here, None)
    with pytest.raises(CompressError, match="expected a file of examples, found a pipe"):
        own_task(OwnFiles(pipe, here / "dev.csv"))


def test_unknown_suffix(here: Path) -> None:
    refused(
        task(train="train.xlsx"),
        here,
        r"train.xlsx: expected a .csv, .tsv, .jsonl or .parquet file, SQuAD's .json or .*found.*xlsx",
    )


@pytest.mark.parametrize("quoting", [True, False])
def test_ragged_rows_show_the_first_few_and_the_count(here: Path, quoting: bool) -> None:
    (here / "train.csv").write_text("text,label\nfine,pos\n" + "one,two,three\n" * 5 + "\nlast,neg\n")
    refused(
        task(quoting=quoting),
        here,
        r"train.csv: line 3: expected 2 fields, found 3; line 4: .*; line 5: [^;]*; 5 such lines in all$",
    )


def test_missing_column(here: Path) -> None:
    refused(task(text=("txt",)), here, r"train.csv: no column 'txt'; did you mean `text`\?; it has 'text', 'label'")
    refused(task(label="gold_label"), here, r"train.csv: no column 'gold_label'")


def test_message_on_missing_column_of_wide_file_names_first_columns(here: Path) -> None:
    names = ["x" * 100, *(f"feature{i}" for i in range(29))]
    (here / "train.csv").write_text(",".join(names) + "\n" + ",".join("1" * 30) + "\n")
    refused(task(), here, rf"no column 'text'; it has '{'x' * 56}…, 'feature0', .*'feature18' and 10 more$")


def test_two_columns_of_one_name(here: Path) -> None:
    (here / "train.csv").write_text("text,text\na,pos\n")
    remedy = "rename one, or name them all with `columns` under `files` of a task file"
    refused(task(), here, rf"train.csv:1: two columns are named 'text'; {remedy}$")
    refused(task(columns=("id", "id")), here, r"train.csv:1: two columns are named 'id'; rename one$")


def test_columns_that_do_not_fit(here: Path) -> None:
    refused(task(columns=("a", "b", "c")), here, r"train.csv:1: `columns` names 3 columns, the file has 2")
    refused(task(header=False), here, r"train.csv: no header, so `columns` must name the columns")


def test_a_header_that_header_false_would_train_on(here: Path) -> None:
    named = task(header=False, columns=("text", "label"))
    refused(named, here, r"train.csv:1: has the names in `columns`: it is a header, so leave `header: false` out")
    text = (here / "train.csv").read_text().split("\n", 1)[1]
    for first in (" text, label", "Label,Text"):
        (here / "train.csv").write_text(f"\n{first}\n{text}")
        refused(named, here, r"train.csv:2: has the names in `columns`")


@pytest.mark.parametrize("content", ["text,label\n", "text,label"])
def test_empty_split(here: Path, content: str) -> None:
    (here / "dev.csv").write_text(content)
    refused(task(), here, r"dev.csv: no examples; expected at least one row after the header$")
    (here / "dev.jsonl").write_text("\n")
    refused(task(dev="dev.jsonl"), here, r"dev.jsonl: no examples; expected at least one row$")


def test_one_file_for_two_splits(here: Path) -> None:
    here_too = Path("..") / here.name / "dev.csv"
    refused(task(dev="./train.csv"), here, r"task mine: files.dev: expected other examples than files.train, found the")
    twice = task(dev={"a": "dev.csv", "b": str(here_too)}).read_from(here / "mine.yaml")
    refused(twice, here, r"mine.yaml: files.dev.b: expected other examples than files.dev.a, found the same file")
    assert len(load_reported(task(dev="train.csv"), here, None).splits["dev"]) == 20  # nothing is trained


def test_empty_files(here: Path) -> None:
    for name in ("e.csv", "e.jsonl"):
        (here / name).write_text("")
        refused(task(dev=name), here, rf"{name}: (empty file|no examples)")
    refused(task(dev={}), here, r"files.dev: expected names")
    refused(task(dev={"train": "dev.csv"}), here, r"files.dev: expected names other than train and tuning")


def test_unknown_label_in_dev(here: Path) -> None:
    (here / "dev.csv").write_text("text,label\na,pos\nb,POS\n")
    refused(
        task(),
        here,
        r"dev.csv: line 3: unknown label 'POS'; did you mean 'pos'\? known: neg, pos; the labels are those of",
    )


@pytest.mark.parametrize("bad", ["nan", "inf", "-inf", "high", "", "1e99", "1_5"])
def test_bad_scores(here: Path, bad: str) -> None:
    rows = "".join(f"t{i},{i}\n" for i in range(10))
    (here / "train.csv").write_text("text,label\n" + rows)
    (here / "dev.csv").write_text(f"text,label\na,1\nb,{bad}\n")
    refused(scores(), here, rf"dev.csv: line 3: expected a finite score, found '{bad}'$")


def test_scores_with_a_decimal_comma_are_told_what_to_write(here: Path) -> None:
    rows = "".join(f"t{i};{i},5\n" for i in range(10))
    (here / "train.csv").write_text("text;label\n" + rows)
    refused(scores(), here, r"train.csv: line 2: expected a finite score, found '0,5'; write '0\.5'; line 3: ")


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("1,234", "; write '1234', or '1.234' if the comma is before decimals"),
        ("-1,234,567", "; write '-1234567'"),
        ("1,234.5", "; write '1234.5'"),
        ("0,125", "; write '0.125'"),
        ("1234,567", "; write '1234.567'"),
        ("1.234,5", "; write '1234.5'"),
        ("1,2,3", ""),
        ("3,", ""),
        ("3, or so", ""),
    ],
)
def test_a_comma_may_separate_thousands(here: Path, written: str, hint: str) -> None:
    (here / "train.csv").write_text(f'text,label\na,1.5\nb,"{written}"\n')
    refused(scores(), here, rf"train.csv: line 3: expected a finite score, found '{written}'{re.escape(hint)}$")
    (here / "train.csv").write_text(f'text,label\na,"{written}"\nb,"{written}"\n')
    message = (
        rf"train.csv: line 2: label: found '{written}'{re.escape(hint)};" if hint else "all 2 examples have the label"
    )
    with pytest.raises(CompressError, match=message):
        own_task(OwnFiles(here / "train.csv", here / "dev.csv", "text", label="label"))


def test_bad_scores_in_json(here: Path) -> None:
    (here / "dev.jsonl").write_text('{"text": "a", "label": NaN}\n{"text": "b", "label": true}\n')
    (here / "train.csv").write_text("text,label\na,1\nb,2\n")
    refused(scores(dev="dev.jsonl"), here, r"line 1: expected a finite score, found nan; line 2: .* found True$")


def test_one_class_and_constant_scores(here: Path) -> None:
    (here / "train.csv").write_text("text,label\n" + "a,pos\nb,pos\n")
    refused(task(), here, r"train.csv: all 2 texts have the label 'pos'; training needs at least two")
    (here / "train.csv").write_text("text,label\n" + "a,3\nb,3.0\n")
    refused(scores(), here, r"train.csv: all 2 texts have the label 3.0")


def test_texts_all_empty(here: Path) -> None:
    (here / "dev.csv").write_text("text,label\n ,pos\n,neg\n")
    refused(task(), here, r"dev.csv: column 'text' is empty in all 2 rows; is it the right one\?")


def test_not_utf8(here: Path) -> None:
    (here / "dev.csv").write_bytes(b"text,label\nfine,pos\ncaf\xe9,neg\n")
    refused(task(), here, r"dev.csv:3: expected UTF-8 text, found byte 0xe9; save the file as UTF-8$")
    (here / "dev.csv").write_bytes(b"\xef\xbb\xbftext,label\n\xe9\nfine,pos\n")
    refused(task(), here, r"dev.csv:2: expected UTF-8 text, found byte 0xe9")


def test_unbalanced_quotes(here: Path) -> None:
    (here / "dev.csv").write_text('text,label\nfine,pos\n"never closed,neg\nmore,neg\n')
    refused(
        task(),
        here,
        r"dev.csv:3: unexpected end of data; check the quotes, or set `quoting: false` under `files` of a task file",
    )
    (here / "dev.csv").write_text('text,label\n"a" b,pos\n')
    refused(task(), here, r"dev.csv:2: .*expected after.*; check the quotes")
    (here / "dev.csv").write_bytes(b"text,label\nfine\rday,pos\n")
    refused(
        task(),
        here,
        r"dev.csv:2: a carriage return is in a field without quotes, or ends a line; quote the field, or end lines",
    )


def test_a_lone_quote_in_tsv_never_swallows_rows(here: Path) -> None:
    (here / "dev.tsv").write_text('text\tlabel\n"open\tpos\nclose"\tneg\n')
    refused(task(dev="dev.tsv"), here, r"dev.tsv:2: a quoted field spans several rows; set `quoting: false`")


def test_bad_json_lines(here: Path) -> None:
    (here / "dev.jsonl").write_text('{"text": "a", "label": "pos"}\n{"text": \n[1]\n')
    refused(
        task(dev="dev.jsonl"), here, r"dev.jsonl: line 2: not JSON: .*; line 3: expected a JSON object, found \[1\]"
    )
    (here / "dev.jsonl").write_text('{"text": "a", "label": "pos"}\n{"text": "b", "label": "neg", "text": "c"}\n')
    refused(task(dev="dev.jsonl"), here, r"dev.jsonl: line 2: two keys are named 'text'; rename one$")
    (here / "dev.jsonl").write_text('{"text": "a", "label": "pos", "id": 1e400}\n')
    refused(task(dev="dev.jsonl"), here, r"dev.jsonl: line 1: the number 1e400 is too large; write it as a text$")
    (here / "dev.jsonl").write_text('{"text": "a", "label": "pos"}\n{"text": "b"}\n')
    refused(task(dev="dev.jsonl"), here, r"dev.jsonl: line 2: no key 'label'; found \['text'\]")
    (here / "dev.jsonl").write_text('{"text": "a", "label": "pos"}\n{"text": null, "label": "pos"}\n')
    refused(task(dev="dev.jsonl"), here, r"dev.jsonl: line 2: text: expected text, found None")


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (["pos"], r"found \['pos'\]; lists of labels are for the kind multilabel"),
        ({"name": "pos"}, r"found {'name': 'pos'}$"),
    ],
)
def test_a_value_with_parts_is_not_one_label(here: Path, label: object, message: str) -> None:
    """Its form in Python would be the name of a class."""
    rows = [{"text": f"words {i}", "label": "neg" if i else label} for i in range(20)]
    (here / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    expected = rf"a\.jsonl: line 1: label: expected one label, as text or a number, {message}"
    refused(task("a.jsonl", "dev.csv"), here, expected)
    with pytest.raises(CompressError, match=expected):
        own_task(OwnFiles(here / "a.jsonl", here / "dev.csv", kind="classification"))


def test_bytes_of_parquet_are_not_a_label(here: Path) -> None:
    table = pyarrow.table({"text": ["a b", "c d"], "label": pyarrow.array([b"pos", b"neg"], pyarrow.binary())})
    pyarrow.parquet.write_table(table, here / "a.parquet")
    with pytest.raises(CompressError, match=r"a\.parquet: row 1: label: expected one label, .* found b'pos'; row 2: "):
        own_task(OwnFiles(here / "a.parquet", here / "dev.csv"))


def test_a_column_with_a_usual_name_that_some_rows_lack_is_not_passed_over(here: Path) -> None:
    rows = [{"text": f"words {i}", "label": f"l{i % 2}", "topic": f"t{i % 2}"} for i in range(20)]
    del rows[7]["label"]
    (here / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    own = OwnFiles(here / "a.jsonl", here / "dev.csv")
    for call in (lambda: own_task(own), lambda: own_task(guess_columns(own, ()))):
        with pytest.raises(CompressError, match=r"a\.jsonl: line 8: no key 'label'"):
            call()


def test_an_ending_that_some_rows_lack_is_not_passed_over(here: Path) -> None:
    rows = [{"context": f"c {i}", "ending0": "a", "ending1": "b", "ending2": "c", "label": i % 2} for i in range(20)]
    del rows[7]["ending2"]
    for name in ("a.jsonl", "b.jsonl"):
        (here / name).write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(CompressError, match=r"a\.jsonl: line 8: no key 'ending2'"):
        own_task(OwnFiles(here / "a.jsonl", here / "b.jsonl"))
    spec = task("a.jsonl", "b.jsonl", kind="choice", text=("context", "ending"))
    refused(spec, here, r"a\.jsonl: line 8: no key 'ending2'")


def test_not_parquet(here: Path) -> None:
    (here / "dev.parquet").write_text("text,label\n")
    refused(task(dev="dev.parquet"), here, r"dev.parquet: cannot be read as Parquet: ")


def test_a_column_of_parquet_that_python_has_no_value_for_is_named(here: Path) -> None:
    """It stops the reading although no text or label is in it."""
    late = pyarrow.array([9_000_000_000_000_000] * 2, pyarrow.timestamp("s"))
    table = pyarrow.table({"text": ["a b", "c d"], "label": ["pos", "neg"], "when": late})
    pyarrow.parquet.write_table(table, here / "dev.parquet")
    refused(task(dev="dev.parquet"), here, r"cannot be read as Parquet: column 'when': .*; leave it out, or")


def test_too_many_unlisted_labels_are_rather_scores(here: Path) -> None:
    (here / "train.csv").write_text("text,label\n" + "".join(f"t{i},{i * 0.01:.2f}\n" for i in range(150)))
    refused(task(), here, r"'label' has 150 different values; list them under `labels`.*or set `kind: regression`")


def test_positive_must_be_a_label(here: Path) -> None:
    refused(task(metrics=("f1",), positive="yes"), here, r"`positive` is 'yes', which is not among \['neg', 'pos'\]")
    (here / "train.csv").write_text("text,label\na,x\nb,y\nc,z\n")
    refused(task(metrics=("f1",)), here, r"metric `f1` with 3 labels needs `positive`")


def test_too_little_to_hold_any_out(here: Path) -> None:
    (here / "train.csv").write_text("text,label\na,pos\nb,neg\n")
    refused(task(), here, r"train.csv: 2 examples are too few to hold some out for tuning")
    (here / "train.csv").write_text("text,label\na,pos\n")
    refused(task(), here, r"train.csv: the only text has the label 'pos'; training needs at least two$")
    (here / "train.csv").write_text("text,label\na,1\n")
    refused(scores(), here, r"train.csv: the only text has the label 1.0; training needs at least two$")
