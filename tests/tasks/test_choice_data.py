"""Multiple choice data: file formats, notes, errors and the tuning split."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
from choice_files import Row, loaded, rows_of, spec_of, write

from compress.errors import CompressError
from compress.spec.task import Hub
from compress.tasks import TASK_KINDS, OwnFiles, load_reported, load_training, own_task
from compress.tasks.data import Split
from compress.tasks.own.template import guess_columns, task_yaml


def write_csv(path: Path, rows: list[Row]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def right(split: Split) -> list[str]:
    """Return the right ending of each question."""
    return [split.texts[1][row] for row in np.flatnonzero(split.labels[:, 0])]


def test_files_with_lists_of_endings_are_a_choice(tmp_path: Path) -> None:
    files = OwnFiles(write(tmp_path / "train.jsonl", rows_of(30)), write(tmp_path / "dev.jsonl", rows_of(6, "dev")))
    spec, folder = own_task(files)
    assert (spec.kind, spec.text, spec.label, spec.metrics) == (
        "choice",
        ("context", "endings"),
        "label",
        ("accuracy",),
    )
    data = load_training(spec, folder, None)
    assert data.train.has_choices and data.train.labels.dtype == np.int64
    assert "train: 30 questions with 90 endings" in data.notes and "dev: 6 questions with 18 endings" in data.notes
    assert len(data.train) + len(data.tuning) == 90


SWAG = {"sent1": "He sat.", "sent2": "He", "ending0": "ran.", "ending1": "slept.", "ending2": "", "label": "1"}
FORMS: list[tuple[Row, tuple[str, ...], str, str]] = [
    (SWAG, ("sent1", "sent2", "ending"), "label", "He slept."),
    (
        {"article": "A", "question": "What?", "options": ["x", "y"], "answer": "B"},
        ("article", "question", "options"), "answer", "What? y",
    ),
    (
        {"id": "q", "question": "What?", "A": "x", "B": "y", "answer": "B"},
        ("question", "A,B"), "answer", "y",
    ),
    (
        {"question": "What?", "choices": {"label": ["A", "B"], "text": ["x", "y"]}, "answerKey": "B"},
        ("question", "choices"), "answerKey", "y",
    ),
    (
        {"premise": "P", "question": "cause", "choice1": "x", "choice2": "y", "label": 1},
        ("premise", "question", "choice"), "label", "cause y",
    ),
    ({"goal": "G", "sol1": "x", "sol2": "y", "label": 1}, ("goal", "sol"), "label", "y"),
    ({"context": "C", "question": "Q", "answer_a": "x", "answer_b": "y", "label": "B"}, ("context", "question", "answer"), "label", "Q y"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "text", "label", "ending"), FORMS)
def test_the_forms_of_published_data_sets_are_found(
    row: Row, text: tuple[str, ...], label: str, ending: str, tmp_path: Path
) -> None:
    nested = any(not isinstance(value, str | int) for value in row.values())
    paths = []
    for name in ("train", "dev"):
        rows = [{**row, text[0]: f"{row[text[0]]} {name} {n}"} for n in range(12)]
        suffix, make = ("jsonl", write) if nested else ("csv", write_csv)
        paths.append(make(tmp_path / f"{name}.{suffix}", rows))
    spec, folder = own_task(OwnFiles(*paths))
    assert (spec.kind, spec.text, spec.label) == ("choice", text, label)
    split = load_reported(spec, folder, None).splits["dev"]
    assert len(split) == 24 and right(split) == [ending] * 12
    assert "kind: choice" in task_yaml(guess_columns(OwnFiles(*paths), ()), tmp_path / "task.yaml")[0]


@pytest.mark.parametrize("kind", [None, "choice"])
@pytest.mark.parametrize("endings", [["one"], ["one", None], "one|two"])
def test_a_question_without_endings_to_choose_among_is_refused_whoever_says_the_kind(
    kind: Any, endings: Any, tmp_path: Path
) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", rows_of(9, name)) for name in ("train", "dev")]
    write(paths[0], [*rows_of(3), {**rows_of(1)[0], "endings": endings}])
    with pytest.raises(CompressError, match=r"train\.jsonl: line 4: endings: expected "):
        load_training(*own_task(OwnFiles(paths[0], paths[1], kind=kind)), None)


def test_an_ending_alone_in_columns_is_refused(tmp_path: Path) -> None:
    rows = [{**SWAG, "sent1": f"He sat {n}."} for n in range(9)]
    paths = [write_csv(tmp_path / f"{name}.csv", rows) for name in ("train", "dev")]
    write_csv(paths[0], [*rows, {**SWAG, "ending1": ""}])
    with pytest.raises(CompressError, match=r"line 11: ending: expected two endings or more to choose among, found 1"):
        load_training(*own_task(OwnFiles(paths[0], paths[1])), None)


@pytest.mark.parametrize(
    ("row", "named", "columns"),
    [
        ({"context": "c", "endings": ["one"], "label": 0}, {}, (("context", "endings"), "label")),
        ({"context": "c", "endings": ["one", "two"], "right": 0}, {"label": "right"}, (("context", "endings"), "right")),
        ({"stem": "c", "choices": ["one", "two"], "gold": 0}, {"text": "stem"}, (("stem", "choices"), "gold")),
        ({"text": "c", "options": ["one", "two"], "label": 0}, {}, (("text", "options"), "label")),
        (SWAG, {"pair": "ending0,ending1"}, (("sent1", "sent2", "ending0,ending1"), "label")),
    ],
)  # fmt: skip
def test_the_kind_is_enough_where_columns_have_usual_names(
    row: Row, named: dict[str, Any], columns: tuple[tuple[str, ...], str], tmp_path: Path
) -> None:
    paths = [write(tmp_path / f"{name}.jsonl", [row]) for name in ("train", "dev")]
    spec, _ = own_task(OwnFiles(paths[0], paths[1], kind="choice", **named))
    assert (spec.text, spec.label) == columns


def test_labels_of_another_name_are_asked_for(tmp_path: Path) -> None:
    paths = [
        write(tmp_path / f"{name}.jsonl", [{"context": "c", "endings": ["one", "two"], "right": 0}])
        for name in ("t", "d")
    ]
    with pytest.raises(
        CompressError, match=r"no column 'label'; name one of 'context', 'endings', 'right' with --label"
    ):
        own_task(OwnFiles(paths[0], paths[1], kind="choice"))


@pytest.mark.parametrize("kind", [None, "choice"])
def test_endings_that_are_named_by_labels_or_written_as_texts(kind: Any, tmp_path: Path) -> None:
    row = {"question": "Q", "A": "one", "B": "two", "C": "three", "answer": "B"}
    paths = [
        write_csv(tmp_path / f"{name}.csv", [{**row, "question": f"{name} {n}", "N": n} for n in range(9)])
        for name in "td"
    ]
    assert own_task(OwnFiles(paths[0], paths[1], kind=kind))[0].text == ("question", "A,B,C")
    row = {"question": "Q", "choices": "['one', 'two']", "answer": 1}
    paths = [
        write_csv(tmp_path / f"{name}.csv", [{**row, "question": f"{name} {n}"} for n in range(9)]) for name in "td"
    ]
    with pytest.raises(CompressError, match=r"line 2: choices: expected a list of endings.*a column for each ending"):
        load_training(*own_task(OwnFiles(paths[0], paths[1], kind=kind)), None)


def test_columns_of_true_and_false_are_no_endings(tmp_path: Path) -> None:
    row = {"question": "Q", "yes": "true", "no": "false", "label": "yes"}
    path = write_csv(tmp_path / "t.csv", [row, row | {"yes": "false", "no": "true", "label": "no"}] * 4)
    assert guess_columns(OwnFiles(path, path), []).kind is None


def test_columns_are_named_with_commas_between(tmp_path: Path) -> None:
    row = {"a": "x", "b": "starts", "A": "one", "B": "two", "gold": "B"}
    paths = [
        write_csv(tmp_path / f"{name}.csv", [{**row, "a": f"{name} {n}"} for n in range(9)]) for name in ("t", "d")
    ]
    spec, folder = own_task(OwnFiles(*paths, text="a, b", pair="A,B", label="gold"))
    assert spec.text == ("a", "b", "A,B") and right(load_reported(spec, folder, None).splits["dev"])[0] == "starts two"
    with pytest.raises(CompressError, match=r"no column 'C'.* with --pair"):
        own_task(OwnFiles(*paths, text="a", pair="A,C", label="gold", kind="choice"))
    with pytest.raises(CompressError, match="--pair: a choice has contexts and endings"):
        own_task(OwnFiles(*paths, text="a", label="b", kind="choice"))
    assert own_task(OwnFiles(*paths, text="a", label="gold", kind="choice"))[0].text == ("a", "A,B")
    with pytest.raises(CompressError, match="--label: expected another column than --pair, found 'B' for both"):
        own_task(OwnFiles(*paths, text="a", pair="A,B", label="B", kind="choice"))
    with pytest.raises(CompressError, match=r"`text`: column 'B' is one of the endings in 'A,B'"):
        load_reported(spec.model_copy(update={"label": "B"}), folder, None)


@pytest.mark.parametrize(
    ("label", "endings", "place"),
    [
        (1, ["a", "b"], 1),
        ("1", ["x", "y"], 1),
        (1.0, ["x", "y"], 1),
        ("b", ["x", "y"], 1),
        ("y", ["x", "y"], 1),
        (" y ", ["x", "y"], 1),
        ("B", {"label": ["B", "A"], "text": ["x", "y"]}, 0),
        ("2", {"label": ["1", "2"], "text": ["x", "y"]}, 1),
        ("0", ["1", "0.5", "3"], 0),
    ],
)
def test_what_a_label_may_be(label: Any, endings: Any, place: int, tmp_path: Path) -> None:
    split = loaded(tmp_path, [{"context": "c", "endings": endings, "label": label}])
    assert np.flatnonzero(split.labels[:, 0]).tolist() == [place]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"label": 2}, r"dev\.jsonl: line 2: label: expected the place of the right ending, from 0 to 1, found 2"),
        ({"label": "7"}, "expected the place of the right ending, from 0 to 1, found '7'"),
        ({"label": "9" * 5000}, "expected the place of the right ending, from 0 to 1, found '999"),
        ({"label": -1}, "found -1, which marks hidden labels: this split cannot be scored"),
        ({"label": "third"}, "expected the place of the right ending, 0 to 1, its letter or its text, found 'third'"),
        ({"label": None}, "expected the place of the right ending, its letter or its text, found None"),
        ({"label": True}, "its letter or its text, found True"),
        ({"label": 0.5}, "from 0 to 1, found 0.5"),
        ({"label": "a", "endings": ["b", "a"]}, "'a' is the text of one ending and the place or the letter of another"),
        ({"label": "0", "endings": ["1", "0"]}, "'0' is the text of one ending and the place or the letter of another"),
        ({"endings": ["one"]}, "line 2: endings: expected two endings or more to choose among, found 1"),
        ({"endings": []}, "expected two endings or more to choose among, found 0"),
        ({"endings": ["one", 3]}, "endings: expected texts, found 3 among the endings"),
        ({"endings": ["one", None]}, "expected texts, found None among the endings"),
        ({"endings": ["one", "  "]}, "expected texts, found '  ' among the endings"),
        (
            {"endings": "one|two"},
            r"expected a list of endings, such as .*; a \.csv or \.tsv has a column for each ending",
        ),
        ({"endings": {"label": ["A"], "text": ["x", "y"]}}, "expected as many labels as endings, found 1 and 2"),
        ({"endings": {"label": ["A", "B", "C"], "text": ["x", "y"]}}, "as many labels as endings, found 3 and 2"),
        ({"endings": {"label": 5, "text": ["x", "y"]}}, "endings: expected a list of the endings' labels, found 5"),
        ({"endings": {"label": "AB", "text": ["x", "y"]}}, "expected a list of the endings' labels, found 'AB'"),
        ({"endings": {"label": ["A", "A"], "text": ["x", "y"]}, "label": "A"}, "'A' is the label of two endings"),
        (
            {"endings": {"label": ["1", "2"], "text": ["x", "y"]}},
            "expected one of the endings' own labels, 1, 2, found 0",
        ),
        (
            {"endings": {"label": ["B", "C"], "text": ["x", "y"]}, "label": "A"},
            "one of the endings' own labels, B, C, found 'A'",
        ),
        ({"context": 5}, "line 2: context: expected text, found 5"),
    ],
)
def test_what_is_no_question_is_refused_with_its_line(fields: Row, said: str, tmp_path: Path) -> None:
    rows = [{"context": f"c {n}", "endings": ["one", "two"], "label": 0} for n in range(3)]
    rows[1] |= fields
    with pytest.raises(CompressError, match=said):
        loaded(tmp_path, rows)


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="no column 'option'"):
        loaded(tmp_path, rows_of(2), text=["context", "option"])
    with pytest.raises(CompressError, match="no column 'right'"):
        loaded(tmp_path, rows_of(2), label="right")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": ["context"]}, r"`text` of a choice task is two columns, \[context, endings\], or three"),
        ({"metrics": ["f1"]}, "do not fit kind `choice`"),
        ({"labels": ["A", "B"]}, "a choice task has no `labels`"),
        ({"kind": "regression", "metrics": ["pearson"], "text": ["a", "b", "c"]}, "is one column or two, found"),
    ],
)
def test_what_a_task_file_may_not_say(fields: Row, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        spec_of(**fields)


def test_an_ending_that_stands_twice_is_noted(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", rows_of(12))
    write(tmp_path / "dev.jsonl", [*rows_of(2, "dev"), {"context": "c", "endings": ["x", "x", "y"], "label": 2}])
    assert any(
        "dev: 1 of 3 questions have an ending twice" in note for note in load_training(spec_of(), tmp_path, None).notes
    )


def test_a_saved_data_set_of_the_hub_is_read(tmp_path: Path) -> None:
    rows = [{**SWAG, "sent1": f"He sat {n}.", "label": n % 2} for n in range(12)]
    columns = {name: [row[name] for row in rows] for name in SWAG}
    features = datasets.Features(
        {name: datasets.Value("string") for name in SWAG} | {"label": datasets.ClassLabel(names=["0", "1"])}
    )
    part = datasets.Dataset.from_dict(columns, features=features)
    datasets.DatasetDict({"train": part, "validation": part.select(range(4))}).save_to_disk(str(tmp_path / "saved"))
    spec = spec_of(files=None, hub=Hub(path="saved"), text=["sent1", "sent2", "ending"])
    split = load_reported(spec, tmp_path, None).splits["dev"]
    assert right(split) == ["He ran.", "He slept."] * 2 and len(split) == 8


def test_the_tuning_split_has_whole_questions_and_counts_them(tmp_path: Path) -> None:
    rows = [*rows_of(40), *({**row, "context": row["context"].upper()} for row in rows_of(10))]
    write(tmp_path / "train.jsonl", rows)
    write(tmp_path / "dev.jsonl", rows_of(4, "dev"))
    data = load_training(spec_of(tuning_examples=3), tmp_path, None)
    train, tuning = ({text.lower() for text in split.texts[0]} for split in (data.train, data.tuning))
    assert tuning and not train & tuning
    gold = TASK_KINDS["choice"].labels.gold(data.tuning.labels, data.tuning.texts)
    assert 1 <= len(gold) <= 3 and data.tuning.labels[:, 0].sum() == len(gold)
    write(tmp_path / "train.jsonl", rows_of(1))
    with pytest.raises(CompressError, match=r"1 question on 1 context is too few .*; expected at least two contexts"):
        load_training(spec_of(), tmp_path, None)
