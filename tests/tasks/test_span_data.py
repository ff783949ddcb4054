"""Conversion of labelled character spans to word labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from tagged_files import jsonl, tagging

from compress.errors import CompressError
from compress.spec.task import Files
from compress.tasks import TrainingData, load_reported, load_training

TEXT = "Ada Lovelace, of New-York (NY), saw Paris."
SPANS = [
    {"start": 0, "end": 12, "label": "PER"},
    {"start": 17, "end": 25, "label": "LOC"},
    {"start": 36, "end": 41, "label": "LOC"},
]
TAGGED = [
    ("Ada", "B-PER"), ("Lovelace", "I-PER"), (",", "O"), ("of", "O"), ("New", "B-LOC"), ("-", "I-LOC"), ("York", "I-LOC"),
    ("(", "O"), ("NY", "O"), (")", "O"), (",", "O"), ("saw", "O"), ("Paris", "B-LOC"), (".", "O"),
]  # fmt: skip


def read(folder: Path, dev: list[tuple[Any, Any]]) -> tuple[TrainingData, list[list[tuple[str, str]]]]:
    """Return the data of train, and each dev text as words with labels."""
    train = [(f"{n} {TEXT}", [shifted(span, len(str(n)) + 1) for span in SPANS]) for n in range(20)]
    for name, texts in (("train", train), ("dev", dev)):
        (folder / f"{name}.jsonl").write_text(jsonl(texts, ("text", "spans")), encoding="utf-8")
    spec = tagging(text=("text",), label="spans", files=Files(train="train.jsonl", dev="dev.jsonl"))
    data, reported = load_training(spec, folder, None), load_reported(spec, folder, None)
    split = reported.splits["dev"]
    assert split.texts[0] == [text for text, _ in dev]
    rows = zip(split.texts[0], split.labels, strict=True)
    return data, [[(text[start:end], data.labels[label]) for label, start, end in words] for text, words in rows]


def shifted(span: dict[str, Any], by: int) -> dict[str, Any]:
    return {**span, "start": span["start"] + by, "end": span["end"] + by}


def test_words_in_a_span_have_its_label(tmp_path: Path) -> None:
    data, words = read(tmp_path, [(TEXT, SPANS), ("Nothing here", [])])
    assert words == [TAGGED, [("Nothing", "O"), ("here", "O")]]
    assert data.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER") and data.notes == ()


def test_spans_are_also_triples_in_any_order(tmp_path: Path) -> None:
    triples = [[span["start"], span["end"], span["label"]] for span in SPANS[::-1]]
    assert read(tmp_path, [(TEXT, triples)])[1] == [TAGGED]


def test_spans_are_read_from_parquet(tmp_path: Path) -> None:
    for name, count in (("train", 20), ("dev", 1)):
        table = pyarrow.table({"text": [TEXT + " " * n for n in range(count)], "spans": [SPANS] * count})
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    spec = tagging(text=("text",), label="spans", files=Files(train="train.parquet", dev="dev.parquet"))
    data = load_reported(spec, tmp_path, None)
    (labels,) = data.splits["dev"].labels
    assert [data.labels[label] for label in labels[:, 0]] == [tag for _, tag in TAGGED]


def test_spans_of_a_data_set_are_columns_of_lists(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    columns = {key: [span[key] for span in SPANS] for key in ("start", "end", "label")}
    features = datasets.Features({
        "text": datasets.Value("string"),
        "spans": {
            "start": datasets.List(datasets.Value("int32")),
            "end": datasets.List(datasets.Value("int32")),
            "label": datasets.List(datasets.Value("string")),
        },
    })  # fmt: skip
    rows = {
        name: {"text": [f"{TEXT} {n}" for n in range(9)], "spans": [columns] * 9} for name in ("train", "validation")
    }
    saved = {name: datasets.Dataset.from_dict(row, features=features) for name, row in rows.items()}
    datasets.DatasetDict(saved).save_to_disk(str(tmp_path / "set"))
    data = load_reported(tagging(text=("text",), label="spans", files=None, hub={"path": "set"}), tmp_path, None)
    labels = data.splits["dev"].labels[0]
    assert [data.labels[label] for label in labels[:-1, 0]] == [tag for _, tag in TAGGED]


def test_a_span_that_cuts_a_word_takes_all_of_it(tmp_path: Path) -> None:
    cut = [{"start": 2, "end": 7, "label": "PER"}, SPANS[1], {"start": 35, "end": 41, "label": "LOC"}]
    data, words = read(tmp_path, [(TEXT, cut)])
    assert words == [TAGGED]  # the space before Paris is not a word
    assert "dev: 1 of 3 spans cut a word and are extended to all of it" in data.notes


def test_offsets_count_characters_not_bytes(tmp_path: Path) -> None:
    text = "😀 Zoë in 東京"
    _, words = read(tmp_path, [(text, [[2, 5, "PER"], [9, 11, "LOC"]])])
    assert words == [[("😀", "O"), ("Zoë", "B-PER"), ("in", "O"), ("東京", "B-LOC")]]


def test_a_span_is_where_its_text_is(tmp_path: Path) -> None:
    """Tools that count bytes or UTF-16 units are off after the first emoji; spaces may be written otherwise."""
    text, span = "😀 Zoë  Roy in 東京", {"start": 2, "end": 10, "label": "PER", "text": "Zoë Roy"}
    _, words = read(tmp_path, [(text, [span])])
    assert words == [[("😀", "O"), ("Zoë", "B-PER"), ("Roy", "I-PER"), ("in", "O"), ("東京", "O")]]
    with pytest.raises(
        CompressError, match=r"line 2: spans: span 1: PER from 3 to 11: expected its `text`, 'Zoë Roy', found"
    ):
        read(tmp_path, [(text, [span]), (text, [span | {"start": 3, "end": 11}])])


@pytest.mark.parametrize("own", ["zoë  roy", "Zoe\u0308 Roy", "", "Zoë Roy,", "Zoë Roy, in 東京", "Zoë", "nobody"])
def test_the_text_of_a_span_may_be_written_otherwise(tmp_path: Path, own: str) -> None:
    span = {"start": 0, "end": 7, "label": "PER", "text": own}
    _, words = read(tmp_path, [("Zoë Roy, in 東京", [span])])
    assert words[0][:2] == [("Zoë", "B-PER"), ("Roy", "I-PER")]


def test_no_spans_may_be_nothing(tmp_path: Path) -> None:
    _, words = read(tmp_path, [(TEXT, None), (TEXT, SPANS)])
    assert {tag for _, tag in words[0]} == {"O"}


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[0, 43, "PER"]], r"line 2: spans: span 1: PER from 0 to 43: expected a part of the text's 42 characters"),
        ([[-1, 3, "PER"]], "span 1: PER from -1 to 3: expected a part"),
        ([[3, 3, "PER"]], "span 1: PER from 3 to 3: expected a part"),
        ([[5, 3, "PER"]], "span 1: PER from 5 to 3: expected a part"),
        ([[0, 12, "PER"], [4, 13, "LOC"]], "PER from 0 to 12 and LOC from 4 to 13 overlap; a word has one label"),
        ([[4, 7, "PER"], [7, 12, "LOC"]], "PER from 4 to 7 and LOC from 7 to 12 share a word; a word has one label"),
        ([[3, 4, "PER"]], "PER from 3 to 4: expected a word there, found none"),
        ([[0, 3]], r"span 1: expected \{.*\} or \[0, 5, \"PER\"\], found \[0, 3\]"),
        ([["0", 3, "PER"]], "span 1: expected"),
        ([[0, True, "PER"]], "span 1: expected"),
        ([[0, 3, ""]], "span 1: expected"),
        ([[0, 3, 7]], "span 1: expected"),
        ([{"start": 0, "end": 3}], "span 1: expected"),
        (["B-PER"], "span 1: expected .* found 'B-PER'; tags need a list of words"),
        (["O", 3, None], "span 1: expected"),
        ("PER", "expected a list of spans, such as .* found 'PER'"),
        (3, "expected a list of spans, such as .* found 3"),
        ({"start": 0, "end": 3, "label": "PER"}, "expected a list of spans, such as"),
    ],
)
def test_spans_that_cannot_be_meant_are_refused_by_their_line(tmp_path: Path, spans: Any, message: str) -> None:
    with pytest.raises(CompressError, match=message):
        read(tmp_path, [(TEXT, SPANS), (TEXT, spans)])


def test_texts_that_are_none_are_refused_by_their_line(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=r"dev\.jsonl: line 2: text: expected text or a list of words, found None"):
        read(tmp_path, [(TEXT, SPANS), (None, [])])
