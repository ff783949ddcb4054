"""A user's own files: what is read, and what is noted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from task_files import refused, scores, task
from whole import TaskData, load_task

from compress.errors import CompressError
from compress.tasks import OwnFiles, load_training, own_task
from compress.tasks.own.template import guess_columns, task_yaml


def everything(data: TaskData) -> dict[tuple[str, ...], Any]:
    """Map the texts of train and tuning to their labels."""
    parts = [data.train, data.tuning]
    return {row: part.labels[i] for part in parts for i, row in enumerate(zip(*part.texts, strict=True))}


def test_csv(here: Path) -> None:
    data = load_task(task(), here, None)
    assert data.labels == ("neg", "pos")  # sorted values of the training column
    assert data.source == "files"
    assert everything(data) == {(f"words number {i}",): i % 2 for i in range(20)}
    assert data.reported["dev"].labels.tolist() == [i % 2 for i in range(20)]


@pytest.mark.parametrize("blank", ["", "  ", '""'])
def test_a_row_without_a_label_is_no_class_of_its_own(here: Path, blank: str) -> None:
    with (here / "train.csv").open("a") as file:
        file.write(f"more words,{blank}\n")
    refused(task(), here, r"train\.csv: line \d+: label: no label")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
@pytest.mark.parametrize("own", [False, True], ids=["task file", "files alone"])
def test_a_label_that_is_not_a_number_is_missing(here: Path, suffix: str, own: bool) -> None:
    """Parquet and JSON use NaN for a missing label."""
    import pyarrow
    import pyarrow.parquet

    rows = [{"text": f"t{i}", "label": float("nan") if i == 4 else float(i % 2)} for i in range(12)]
    (here / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), here / "a.parquet")
    with pytest.raises(CompressError, match=rf"a\{suffix}: (line|row) 5: label: no label, found nan"):
        if own:
            own_task(OwnFiles(here / f"a{suffix}", here / "dev.csv", "text", label="label"))
        else:
            load_training(task(f"a{suffix}", "dev.csv"), here, None)


def test_names_of_more_digits_than_python_reads_sort_as_words(here: Path) -> None:
    long, low = "9" * 5000, "-" + "1" * 4400
    rows = [f"text {i},{(10, 2, long, low)[i % 4]}" for i in range(40)]
    (here / "train.csv").write_text("text,label\n" + "\n".join(rows))
    (here / "dev.csv").write_text("text,label\nx,10\n")
    assert load_training(task(), here, None).labels == ("2", "10", low, long)
    own = OwnFiles(here / "train.csv", here / "dev.csv", "text", label="label")
    assert own_task(own)[0].labels == ("2", "10", low, long)


def test_labels_of_the_spec_give_the_ids(here: Path) -> None:
    assert load_task(task(labels=("pos", "neg")), here, None).reported["dev"].labels.tolist()[:2] == [1, 0]


def test_whole_number_labels_sort_as_numbers(here: Path) -> None:
    rows = [f"text {i},{(1, 2, 10, -1)[i % 4]}" for i in range(20)]
    (here / "train.csv").write_text("text,label\n" + "\n".join(rows))
    (here / "dev.csv").write_text("text,label\nx,10\n")
    data = load_task(task(), here, None)
    assert data.labels == ("-1", "1", "2", "10")
    assert data.reported["dev"].labels.tolist() == [3]


def test_quoted_newlines_and_delimiters_are_text_and_lines_are_counted_right(here: Path) -> None:
    (here / "dev.csv").write_text('text,label\n"two\nlines, and a ""quote""",pos\nplain,neg\n')
    data = load_task(task(), here, None)
    assert data.reported["dev"].texts[0] == ['two\nlines, and a "quote"', "plain"]
    (here / "dev.csv").write_text('text,label\n"a\nb\nc",pos\nplain,maybe\n')
    refused(task(), here, r"dev.csv: line 5: unknown label 'maybe'; known: neg, pos; ")
    (here / "dev.csv").write_text('text,label\n"a\nb\nc",huh\nplain,pos\n')
    refused(task(), here, r"dev.csv: line 2: unknown label 'huh'")


def test_tsv_without_quoting_or_header(here: Path) -> None:
    for name, word in (("a.tsv", "number"), ("b.tsv", "quote")):
        (here / name).write_text("".join(f'id{i}\t"{word} {i}\t{i % 2}\n' for i in range(12)))
    spec = task("a.tsv", "b.tsv", quoting=False, header=False, columns=("id", "text", "label"))
    data = load_task(spec, here, None)
    assert data.reported["dev"].texts[0][0] == '"quote 0'
    assert len(data.train) + len(data.tuning) == 12


def test_columns_rename_a_header(here: Path) -> None:
    data = load_task(task(text=("a",), label="b", columns=("a", "b")), here, None)
    assert len(data.reported["dev"]) == 20


def test_jsonl_keeps_line_separators_inside_texts(here: Path) -> None:
    for name, word in (("a.jsonl", "c"), ("b.jsonl", "b")):
        rows = [{"text": f"a\u2028{word} {i}", "label": i % 2} for i in range(12)]
        text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n"
        (here / name).write_text(text, encoding="utf-8")
    data = load_task(task("a.jsonl", "b.jsonl"), here, None)
    assert data.labels == ("0", "1")
    assert data.reported["dev"].texts[0][3] == "a\u2028b 3"


@pytest.mark.parametrize("labels", [[0, 1] * 6, [0.0, 1.0] * 6, ["0", "1"] * 6])
def test_parquet(here: Path, labels: list[Any]) -> None:
    import pyarrow
    import pyarrow.parquet

    for name in ("a.parquet", "b.parquet"):
        table = pyarrow.table({"text": [f"{name} {i}" for i in range(12)], "label": labels})
        pyarrow.parquet.write_table(table, here / name)
    data = load_task(task("a.parquet", "b.parquet", labels=("0", "1")), here, None)
    assert data.reported["dev"].labels.tolist() == [0, 1] * 6


def test_pairs_regression_and_several_dev_sets(here: Path) -> None:
    for name, word in (("train", "a"), ("one", "c"), ("two", "d")):
        rows = "".join(f"{word} {i},b {i},{i / 4}\n" for i in range(20))
        (here / f"{name}.csv").write_text("first,second,score\n" + rows)
    spec = scores(text=("first", "second"), label="score", dev={"one": "one.csv", "two": "two.csv"})
    data = load_task(spec, here, None)
    assert list(data.reported) == ["one", "two"]
    assert data.labels == ()
    assert data.train.labels.dtype == np.float32
    assert everything(data)[("a 3", "b 3")] == 0.75


def test_a_byte_order_mark_is_not_part_of_the_first_column(here: Path) -> None:
    dev = here / "dev.csv"
    dev.write_bytes(b"\xef\xbb\xbf" + dev.read_bytes())
    assert len(load_task(task(), here, None).reported["dev"]) == 20


def test_a_label_that_train_lacks_is_noted(here: Path) -> None:
    notes = load_task(task(labels=("neg", "pos", "neutral")), here, None).notes
    assert notes == ("train has no example of the label 'neutral'",)


def test_a_reported_split_of_one_label_is_noted(here: Path) -> None:
    (here / "one.csv").write_text("text,label\na,pos\nb,pos\n")
    (here / "tuning.csv").write_text("text,label\nc,pos\nd,neg\n")
    spec = task(dev={"films": "dev.csv", "praise": "one.csv"})
    notes = load_training(spec, here, None, here / "tuning.csv").notes
    assert notes == ("praise has one label alone, 'pos': its scores cannot compare models",)


ZERO, RIGHT = "every model scores 0 on it", "a model that gives no other is always right"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"metrics": ("matthews",)}, ZERO),
        ({"metrics": ("f1", "matthews")}, ZERO),
        ({"metrics": ("f1",), "positive": "neg"}, RIGHT),
        ({"metrics": ("f1", "accuracy")}, RIGHT),
        ({"metrics": ("accuracy",)}, RIGHT),
        ({"metrics": ("f1_macro",)}, RIGHT),
    ],
)
def test_a_tuning_split_of_one_label_is_noted(here: Path, fields: dict[str, Any], reason: str) -> None:
    rows = "".join(f"words number {i},{'pos' if i == 3 else 'neg'}\n" for i in range(20))
    (here / "train.csv").write_text("text,label\n" + rows)
    data = load_training(task(**fields), here, None)
    assert data.tuning.labels.tolist() == [0, 0]
    (note,) = data.notes
    assert note == (
        f"the tuning split has one label alone, 'neg': {reason}, so it chooses no checkpoint; name a file with other labels, too, with "
        "--tuning, or as `tuning` in the task file, or raise its `tuning_fraction`"
    )


def test_labels_that_the_tuning_split_lacks_are_noted(here: Path) -> None:
    rows = "".join(f"words number {i},{('pos', 'neg')[i % 2] if i < 36 else f'rare {i}'}\n" for i in range(40))
    (here / "train.csv").write_text("text,label\n" + rows)
    (note,) = load_training(task(), here, None).notes
    assert note.startswith(
        "the tuning split has no example of 'rare 36', 'rare 37', 'rare 38' and 1 more, which train has: no checkpoint is chosen by "
        "how well models know them; name a file with all labels with --tuning"
    )
    (here / "own.csv").write_text("text,label\none,pos\ntwo,neg\n" + "".join(f"t{i},rare {i}\n" for i in range(36, 39)))
    (note,) = load_training(task(), here, None, here / "own.csv").notes
    assert "no example of 'rare 39'," in note and note.endswith("with --tuning, or as `tuning` in the task file")


def test_a_tuning_split_without_entities_is_noted(here: Path) -> None:
    for name in ("train", "dev"):
        texts = [f"{name}{i} {'B-PER' if i < 1 else 'O'}\nlives{i} O\n\n" for i in range(32)]
        (here / f"{name}.conll").write_text("".join(texts))
    fields: dict[str, Any] = {"kind": "tagging", "text": ("tokens",), "label": "tags"}
    for metric, reason in (("entity_f1", ZERO), ("accuracy", RIGHT)):
        data = load_training(task("train.conll", "dev.conll", metrics=(metric,), **fields), here, None)
        assert any(f"the tuning split has one label alone, 'O': {reason}" in note for note in data.notes)


def test_a_reported_split_that_is_mostly_a_copy_of_train_is_refused(here: Path) -> None:
    """By text and label; at most half is noted."""
    train = (here / "train.csv").read_text().splitlines()
    for copied, more in ((20, 0), (11, 9)):
        lines = [train[0], *reversed([line.replace("words", " WORDS") for line in train[1 : copied + 1]])]
        (here / "dev.csv").write_text("\n".join([*lines, *(f"other {i},pos" for i in range(more))]) + "\n")
        reason = rf"dev\.csv: {copied} of its 20 examples are also in train, with the same label, which models learn by heart; expected"
        refused(task(), here, reason)
    (here / "dev.csv").write_text("\n".join([*train[:11], *(f"other {i},pos" for i in range(10))]) + "\n")
    assert load_training(task(), here, None).notes == ("10 of 20 dev texts also stand in train",)
    swapped = [line.replace(",pos", ",x").replace(",neg", ",pos").replace(",x", ",neg") for line in train]
    (here / "dev.csv").write_text("\n".join(swapped) + "\n")
    assert load_training(task(), here, None).notes == ("20 of 20 dev texts also stand in train",)


def test_one_empty_text_is_kept(here: Path) -> None:
    (here / "dev.csv").write_text("text,label\n,pos\nx,neg\n")
    assert load_task(task(), here, None).reported["dev"].texts[0] == ["", "x"]


@pytest.mark.parametrize("where", [0, 3, 19])
def test_a_key_that_no_task_names_may_be_in_any_rows(here: Path, where: int) -> None:
    rows = [{"text": f"words {i}", "label": f"l{i % 2}"} | ({"note": "x y z"} if i == where else {}) for i in range(20)]
    for name in ("a.jsonl", "b.jsonl"):
        (here / name).write_text("\n".join(json.dumps({**row, "text": f"{name} {row['text']}"}) for row in rows))
    assert len(load_task(task("a.jsonl", "b.jsonl"), here, None).reported["dev"]) == 20
    own = OwnFiles(here / "a.jsonl", here / "b.jsonl")
    assert own_task(own)[0].labels == ("l0", "l1")
    text, rest, _ = task_yaml(guess_columns(own, ()), here / "own.yaml")
    assert rest == ["note"] and "not used: 'note'" in text
    first = 1 if where else 2
    refused(
        task("a.jsonl", "b.jsonl", text=("note",)), here, rf"line {first}: no key 'note'; found \['text', 'label'\]"
    )
    for option, named in (("text", {"text": "note"}), ("pair", {"pair": "note"}), ("label", {"label": "note"})):
        with pytest.raises(
            CompressError, match=f"no key 'note'.*19 such lines in all; .* another column with --{option}"
        ):
            own_task(replace(own, **named))


def test_fields_longer_than_the_csv_modules_limit(here: Path) -> None:
    (here / "dev.csv").write_text("text,label\n" + "x" * 200_000 + ",pos\ny,neg\n")
    assert len(load_task(task(), here, None).reported["dev"].texts[0][0]) == 200_000


def test_a_label_that_only_looks_like_a_known_one_is_shown_by_its_characters(here: Path) -> None:
    (here / "train.csv").write_text("text,label\n" + "a,\xe9t\xe9\nb,neg\n" * 3, encoding="utf-8")
    (here / "dev.csv").write_text("text,label\na,neg\nb,e\u0301te\u0301\n", encoding="utf-8")
    refused(
        task(labels=["neg", "\xe9t\xe9"]),
        here,
        r"dev.csv: line 3: unknown label 'e\\u0301te\\u0301': it looks like '\\xe9t\\xe9', and its characters are encoded in another way",
    )
