"""Texts of train that have several labels are noted, with their number and two of their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from task_files import scores, task

from compress.spec.task import Synthetic, TaskSpec
from compress.tasks import load_training

CLAIM = ": a model can be right on one of them alone"


def _notes(folder: Path, spec: TaskSpec, rows: list[str], header: str = "text,label") -> list[str]:
    """Return the notes on different labels for a train of these rows and twenty others."""
    one, other = (row.rpartition(",")[2] for row in rows[:2])
    texts = [",".join(f"story {i} {column}" for column in range(header.count(","))) for i in range(22)]
    others = [f"{text},{other if i % 2 else one}" for i, text in enumerate(texts[2:])]
    (folder / "train.csv").write_text("\n".join([header, *rows, *others]) + "\n")
    (folder / "dev.csv").write_text(f"{header}\n{texts[0]},{one}\n{texts[1]},{other}\n")
    return [note for note in load_training(spec, folder, None).notes if "different labels" in note]


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        (["a,pos", "b,neg", "a,pos"], None),
        (["a,pos", "b,neg", "A,neg", "a ,neg"], None),  # case and spaces may tell them apart
        (["a,pos", "b,neg", ",pos", ",neg"], None),  # empty texts have a note of their own
        (
            ["a,pos", "b,neg", "a,pos", "a,neg"],
            "1 text of train has different labels in different lines, 3 in all, such as lines 2 ('pos') and 5 ('neg')",
        ),
        (
            ["a,pos", "b,neg", "b,pos", "a,neg", "b,neg", "c,neg"],
            "2 texts of train have different labels in different lines, 5 in all, such as lines 3 ('neg') and 4 ('pos')",
        ),
    ],
)
def test_one_text_with_two_labels_is_noted(tmp_path: Path, rows: list[str], note: str | None) -> None:
    assert _notes(tmp_path, task(), rows) == [f"{note}{CLAIM}"] * bool(note)


def test_pairs_are_compared_whole(tmp_path: Path) -> None:
    pairs = task(text=("text", "other"))
    rows = ["a,x,pos", "a,y,neg", "x,a,neg"]
    assert _notes(tmp_path, pairs, rows, "text,other,label") == []
    expected = (
        "1 pair of train has different labels in different lines, 2 in all, such as lines 2 ('pos') and 5 ('neg')"
    )
    assert _notes(tmp_path, pairs, [*rows, "a,x,neg"], "text,other,label") == [expected + CLAIM]


def test_several_labels_are_compared_as_sets(tmp_path: Path) -> None:
    several = task(kind="multilabel", metrics=("f1_micro",))
    assert _notes(tmp_path, several, ["a,p|q", "b,q", "a,q|p"]) == []
    expected = "1 text of train has different labels in different lines, 2 in all, such as lines 2 and 4"
    assert _notes(tmp_path, several, ["a,p|q", "b,q", "a,q"]) == [expected + CLAIM]


def test_labels_of_words_are_compared(tmp_path: Path) -> None:
    words = task("train.conll", "dev.conll", kind="tagging", text=("tokens",), label="tags", metrics=("entity_f1",))
    (tmp_path / "dev.conll").write_text("Eve B-PER\nsat O\n")
    one, other = "Ada B-PER\nsat O\n\n", "Ada O\nsat O\n\n"
    filler = "".join(f"Bob B-PER\nran O\n{i} O\n\n" for i in range(20))
    for second, lines in ((one, None), (other, "lines 1 and 4")):
        (tmp_path / "train.conll").write_text(one + second + filler)
        notes = [note for note in load_training(words, tmp_path, None).notes if "different labels" in note]
        assert len(notes) == bool(lines) and all(f"such as {lines}{CLAIM}" in note for note in notes)


def test_scores_and_data_of_others_are_left_alone(tmp_path: Path) -> None:
    assert _notes(tmp_path, scores(tuning_fraction=0.5), ["a,1", "b,2", "a,2"]) == []
    embedded = TaskSpec(
        name="t", text=("text",), label="label", metrics=("accuracy",), synthetic=Synthetic(generator="sentiment")
    )
    assert not any("different labels" in note for note in load_training(embedded, None, None).notes)
