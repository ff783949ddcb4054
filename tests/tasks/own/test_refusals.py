"""A task from files alone: what cannot be used is refused in one line, or asked about."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from review_files import write

from compress.errors import CompressError
from compress.spec.kinds import KINDS
from compress.tasks import OwnFiles, fingerprint, load_training, own_files, own_task


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["0.0", "1.0"] * 10, r"the values 0, 1 alone, .* '0\.0' \(line 2\)"),
        (["0", "1"] * 29 + ["1.0"], r"the values 0, 1 alone, .* '1\.0' \(line 118\)"),
        ([f"{n}.0" for n in range(10)] * 2, "the values 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 alone"),
        ([f"{n}.0" for n in range(11)] * 2, None),
        (["0.0", "1.0"] * 10 + ["0.5"], None),
        ([f"{n}.0" for n in range(5)], None),
    ],
)
def test_a_few_whole_numbers_with_a_decimal_point_are_asked_about(
    tmp_path: Path, labels: list[str], said: str | None
) -> None:
    files = OwnFiles(write(tmp_path, "a.csv", labels), write(tmp_path, "b.csv", labels), "review", label="stars")
    if said is None:
        assert own_task(files)[0].kind == "regression"
        return
    with pytest.raises(CompressError, match=rf"a\.csv: column 'stars' has {said}.*: give --kind classification if"):
        own_task(files)
    for kind in ("classification", "regression"):
        assert own_task(replace(files, kind=kind))[0].kind == kind  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [{"text": w, "label": t} for w, t in (("Ada", "B-PER"), ("sat", "O")) * 4],
            "has tags of single words, such as 'B-PER'; write",
        ),
        (
            [
                {"text": f"{w}{n}", "label": t}
                for n in range(4)
                for w, t in (("Ada", "B-PER"), ("King", "I-PER"), ("s", "O"))
            ],
            "has tags of single words, such as 'B-PER'; write",
        ),
        (
            [{"text": "Ada sat", "label": "B-PER O"}, {"text": "so", "label": "O"}] * 4,
            "the tags of several words .* 'B-PER O'; write",
        ),
        (
            [{"question": "Who?", "context": "Ada sat.", "label": "Ada"}] * 4,
            "has answers without positions .* 'Ada'; to find",
        ),
        (
            [{"question": "Who?", "context": "Ada sat.", "label": ["Ada"]}] * 4,
            r"positions or texts, such as \['Ada'\]; to find",
        ),
        ([{"question": "Who?", "context": "Ada sat.", "start": "0"}] * 4, "positions or texts, such as '0'; to find"),
    ],
)
def test_tags_and_answers_in_other_forms_are_no_classes(
    tmp_path: Path, rows: list[dict[str, Any]], expected: str
) -> None:
    paths = [tmp_path / "train.jsonl", tmp_path / "dev.jsonl"]
    for path in paths:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text, *pair, label = rows[0]
    files = OwnFiles(paths[0], paths[1], text, next(iter(pair), None), label)
    with pytest.raises(CompressError, match=rf"train\.jsonl: column '{label}' .*{expected}.*--kind classification"):
        own_task(files)


@pytest.mark.parametrize(
    ("header", "row", "labels"),
    [
        ("text,label", "word{}", ("E-mail", "E-commerce")),
        ("text,label", "word{}", ("O", "B-LOC")),
        ("text,label", "这部电影很好看{}", ("B-级", "S-级")),
        ("text,label", "the song {}", ("B-side", "B-side S-side")),
        ("question,context,label", "Is it {}?,room 10", ("0", "1")),
        ("question,context,start", "When {}?,In spring", ("early", "late")),
    ],
)
def test_classes_that_look_like_tags_or_answers_are_classes(
    tmp_path: Path, header: str, row: str, labels: tuple[str, str]
) -> None:
    paths = [tmp_path / "train.csv", tmp_path / "dev.csv"]
    for path in paths:
        path.write_text("\n".join([header, *(f"{row.format(n)},{labels[n % 2]}" for n in range(8))]))
    text, *pair, label = header.split(",")
    spec, _ = own_task(OwnFiles(paths[0], paths[1], text, next(iter(pair), None), label))
    assert (spec.kind, set(spec.labels or ())) == ("classification", set(labels))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"text": "revew"}, r"no column 'revew'; did you mean `review`\? name one of 'review', 'stars' with --text"),
        ({"label": "y"}, "no column 'y'; name one of 'review', 'stars' with --label"),
        ({"pair": "other"}, "no column 'other'; name one of 'review', 'stars' with --pair"),
        ({"pair": "review"}, "--pair: expected another column than --text, found 'review' for both"),
        ({"label": "review"}, "--label: expected another column than --text, found 'review' for both"),
        ({"train": "b.csv"}, "--dev: expected other examples than --train, found the same file"),
        ({"train": "none.csv"}, r"none\.csv: no such file"),
        ({"train": "one.csv"}, "all 4 examples have the label 'a'; training needs at least two"),
        ({"train": "many.csv"}, "column 'stars' has 101 different values; choose another with --label, or give"),
        ({"train": "empty.csv"}, "empty file"),
        (
            {"train": "asked.csv", "text": "question", "pair": "context", "label": "start"},
            "no examples; expected at least one row after the header",
        ),
        ({"train": "headed.csv"}, "no examples; expected at least one row after the header"),
        (
            {"train": "unlabelled.csv"},
            "line 4: stars: no label.*; fill it in or remove the row, or give --kind multilabel if texts may have none or several",
        ),
        ({"train": "unlabelled.csv", "kind": "regression"}, "line 4: stars: no label; line 5: stars: no label$"),
        ({"train": "bars.csv"}, r"expected columns with commas between them, found 'review\|stars'"),
        ({"train": "commas.csv"}, "line 2: stars: found '4,5'; write '4.5'; line 3: stars: found '3,0'; write '3.0'$"),
        ({"train": "gaps.csv"}, "line 6: stars: expected a number, found 'nan'; .* --kind classification, if they are"),
        ({"train": "blanks.csv"}, "line 6: stars: no label; line 7: stars: no label$"),
        ({"train": "latin.csv"}, r"latin\.csv:2: expected UTF-8 text, found byte 0xe9"),
        ({"train": "a.xls"}, r"expected a \.csv, \.tsv, .* of one word per line \(\.conll, .*\), found suffix '\.xls'"),
    ],
)
def test_what_cannot_be_used_is_told_in_a_line(tmp_path: Path, columns: dict[str, Any], expected: str) -> None:
    for name in ("a.csv", "b.csv"):
        write(tmp_path, name, ["a", "b"] * 4)
    write(tmp_path, "one.csv", ["a", "a"])
    write(tmp_path, "many.csv", list(range(101)))
    write(tmp_path, "unlabelled.csv", ["a", " "])
    write(tmp_path, "gaps.csv", [1.5, 2.5, "nan"])
    write(tmp_path, "blanks.csv", [1.5, 2.5, ""])
    write(tmp_path, "headed.csv", [])
    (tmp_path / "asked.csv").write_text("question,context,start\n")
    (tmp_path / "bars.csv").write_text("review|stars\nfine|a\n")
    (tmp_path / "commas.csv").write_text("review;stars\nfine;4,5\ndull;3,0\nso;4\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "a.xls").write_text("review,stars\n")
    (tmp_path / "latin.csv").write_bytes("review,stars\ncafé,a\n".encode("latin-1"))
    words: dict[str, Any] = {"train": "a.csv", "dev": "b.csv", "text": "review", "label": "stars", **columns}
    files = {name: tmp_path / words.pop(name) for name in ("train", "dev")}
    with pytest.raises(CompressError, match=expected) as caught:
        own_task(OwnFiles(**files, **words))
    assert "\n" not in str(caught.value)


def test_a_column_of_labels_is_not_suggested_for_texts(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("Ticket Body,Intent\n" + "where is it,bill\nI paid,refund\n" * 4)
    with pytest.raises(
        CompressError, match=r"no column 'text'; name one of 'Ticket Body', 'Intent' with --text, or let"
    ):
        own_task(OwnFiles(tmp_path / "a.csv", tmp_path / "b.csv", "text", label="Intent"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            {"train": "a.csv"},
            "--dev: expected a file of labelled examples beside --train.*if there is one file alone, move part of",
        ),
        ({"dev": "a.csv"}, "--train: expected a file of labelled examples beside --dev"),
        ({"text": "review"}, "--text describes files of your own: expected --train FILE and --dev FILE with it"),
        (
            {"max_length": 64},
            "--max-length describes files of your own: .* with it; a task file has `max_length` instead$",
        ),
        ({"pair": "b"}, "; a task file has `text` instead$"),
        (
            {"train": "a", "dev": "b", "kind": "sorting"},
            f"--kind: expected classification, multilabel, .* or {[*KINDS][-1]}, found 'sorting'",
        ),
        ({"train": "a", "dev": "b", "kind": "multi-label"}, "found 'multi-label'; did you mean `multilabel`"),
        ({"train": "a", "dev": "b", "kind": "multiclass"}, "found 'multiclass'; that is `classification` here$"),
        ({"train": "a", "dev": "b", "kind": "Token_Classification"}, "; that is `tagging` here$"),
        ({"train": "a", "dev": "b", "max_length": 0}, "--max-length: expected at least 1 token, found 0"),
    ],
)
def test_half_of_what_is_needed(words: dict[str, Any], expected: str) -> None:
    none = dict.fromkeys(("train", "dev", "text", "pair", "label", "kind", "max_length"))
    with pytest.raises(CompressError, match=expected):
        own_files(**{**none, **words})
    assert own_files(**none) is None


@pytest.mark.parametrize(
    ("train", "dev", "expected"),
    [
        ("a.conll", "b.jsonl", r"a\.conll is a file of one word per line, with 'tokens', 'tags', .*b\.jsonl is a table, with 'text', 'en"),
        ("a.json", "b.csv", r"a\.json is one of SQuAD's, with 'question', 'context', 'answers', .*b\.csv is a table, with 'text', 'la"),
        ("a.csv", "b.conll", r"a\.csv is a table, with 'text', 'label', and .*b\.conll is a file of one word per line, with 'tokens', 'ta"),
    ],
)  # fmt: skip
def test_train_and_dev_of_different_forms_are_told_what_they_are(
    tmp_path: Path, train: str, dev: str, expected: str
) -> None:
    question = {"question": "who?", "id": "1", "answers": [{"text": "Ada", "answer_start": 0}]}
    squad = {"data": [{"paragraphs": [{"context": "Ada lived.", "qas": [question]}]}]}
    contents = {
        "a.conll": "Ada B-PER\nsaw O\n",
        "b.conll": "Ada B-PER\nsaw O\n",
        "b.jsonl": json.dumps({"text": "Ada saw", "entities": [[0, 3, "PER"]]}),
        "a.json": json.dumps(squad),
        "a.csv": "text,label\nfine,yes\ndull,no\n",
        "b.csv": "text,label\nfine,yes\ndull,no\n",
    }
    for name in (train, dev):
        (tmp_path / name).write_text(contents[name])
    with pytest.raises(CompressError, match=expected) as caught:
        own_task(OwnFiles(tmp_path / train, tmp_path / dev))
    assert str(caught.value).startswith("--dev: ") and str(caught.value).endswith("give both in the same form")


def test_forms_that_have_the_same_columns_may_differ(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Ada B-PER\nsaw O\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"tokens": ["Ada"], "tags": ["B-PER"]}))
    assert own_task(OwnFiles(tmp_path / "a.conll", tmp_path / "b.jsonl"))[0].kind == "tagging"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", ["a", "b"])
    none = dict.fromkeys(("text", "pair", "label", "kind", "max_length"))
    for option, files in (("--train", (tmp_path, path)), ("--dev", (path, tmp_path))):
        with pytest.raises(CompressError) as caught:
            own_files(train=files[0], dev=files[1], **none)
        assert str(caught.value) == f"{option}: expected a file of labelled examples, found the folder {tmp_path}"


@pytest.mark.parametrize("option", ["train", "dev"])
def test_a_missing_file_is_refused_with_its_option(tmp_path: Path, option: str) -> None:
    files: dict[str, Any] = {name: write(tmp_path, f"{name}.csv", ["a", "b"]) for name in ("train", "dev")}
    rest = dict.fromkeys(("text", "pair", "label", "kind", "max_length"))
    assert own_files(**files, **rest) is not None
    with pytest.raises(CompressError, match=rf"^--{option}: .*no\.csv: no such file$"):
        own_files(**files | {option: tmp_path / "no.csv"}, **rest)


def test_a_missing_tuning_file_is_refused_with_its_option(tmp_path: Path) -> None:
    train, dev = (write(tmp_path, f"{name}.csv", ["a", "b"]) for name in ("train", "dev"))
    spec, source = own_task(OwnFiles(train, dev, "review", label="stars"))
    for read in (load_training, fingerprint):
        with pytest.raises(CompressError, match=r"^--tuning: .*no\.csv: no such file$"):
            read(spec, source, None, tmp_path / "no.csv")
