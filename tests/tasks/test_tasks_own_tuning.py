"""A tuning split named by the task or the command: read like the task's files, and refused if invalid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from whole import count_near

from compress.errors import CompressError
from compress.spec.task import Files, TaskSpec
from compress.tasks import BUILTIN_TASKS, Split, TrainingData, fingerprint, load_reported, load_training


def task(**files: Any) -> TaskSpec:
    return TaskSpec(
        name="mine",
        text=("text",),
        label="label",
        metrics=("accuracy",),
        files=Files(train="train.csv", dev="dev.csv", **files),
    )


def write(path: Path, texts: list[str], labels: tuple[str, ...] = ("neg", "pos")) -> Path:
    path.write_text("text,label\n" + "".join(f"{text},{labels[i % len(labels)]}\n" for i, text in enumerate(texts)))
    return path


def own(folder: Path) -> Path:
    return write(folder / "own.csv", [f"other {i}" for i in range(12)])


def check(data: TrainingData) -> None:
    assert len(data.train) == 20  # nothing is held out
    assert data.tuning.texts[0] == [f"other {i}" for i in range(12)]
    assert data.tuning.labels.tolist() == [0, 1] * 6


def test_a_file_of_the_task(here: Path) -> None:
    own(here)
    data = load_training(task(tuning="own.csv"), here, None)
    check(data)
    assert data.notes == ()
    assert list(load_reported(task(tuning="own.csv"), here, None).splits) == ["dev"]


def test_a_file_of_the_command_comes_before_the_task_s(here: Path) -> None:
    write(here / "first.csv", ["x", "y"])
    check(load_training(task(tuning="first.csv"), here, None, own(here)))
    check(load_training(task(), here, None, own(here)))


def test_the_fingerprint_follows_its_contents(here: Path) -> None:
    path = own(here)
    fingerprints = [fingerprint(task(), here, None), fingerprint(task(), here, None, path)]
    assert fingerprint(task(tuning="own.csv"), here, None) == fingerprints[1]
    assert load_training(task(), here, None, path).fingerprint == fingerprints[1]
    assert load_reported(task(), here, None, path).fingerprint == fingerprints[1]
    path.write_text(path.read_text() + "another,pos\n")
    assert len({*fingerprints, fingerprint(task(), here, None, path)}) == 3


def test_an_official_task_reads_it_in_the_official_layout(glue: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    path.write_text('sentence\tlabel\na "lone quote\t1\nanother\t0\n')
    data = load_training(BUILTIN_TASKS["sst2"], None, glue, path)
    assert data.tuning.texts[0] == ['a "lone quote', "another"] and data.tuning.labels.tolist() == [1, 0]
    assert len(data.train) == 6


def test_an_embedded_task_reads_it_by_its_own_column_names(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("sentence,label\na fine film,positive\na dull film,negative\n")
    data = load_training(BUILTIN_TASKS["toy-sentiment"], None, None, path)
    assert data.tuning.labels.tolist() == [1, 0] and len(data.train) == 6000
    assert fingerprint(BUILTIN_TASKS["toy-sentiment"], None, None, path) == data.fingerprint


@pytest.mark.parametrize(("name", "reason"), [("dev", "scores are reported on"), ("train", "models learn by heart")])
def test_another_split_is_refused_as_tuning_whatever_its_order_and_case(here: Path, name: str, reason: str) -> None:
    lines = (here / f"{name}.csv").read_text().splitlines()
    path = here / "copy.csv"
    path.write_text("\n".join([lines[0], *reversed([line.replace("words", "WORDS") for line in lines[1:]])]) + "\n")
    with pytest.raises(CompressError, match=rf"copy\.csv: 20 of its 20 texts are also in {name}, which {reason}"):
        load_training(task(), here, None, path)


def test_a_few_shared_texts_are_noted_and_those_of_a_reported_split_left_out(here: Path) -> None:
    path = write(here / "own.csv", ["words dev 3", *(f"other {i}" for i in range(5)), "Words number  4"])
    data = load_training(task(), here, None, path)
    assert data.notes == (
        "1 of 7 tuning texts also stand in train",
        "1 of 7 tuning texts also stand in dev, and are left out",
    )
    assert data.tuning.texts[0] == [*(f"other {i}" for i in range(5)), "Words number  4"]
    assert data.tuning.labels.tolist() == [1, 0, 1, 0, 1, 0]


def test_empty_texts_are_noted_and_are_not_told_as_shared_ones(here: Path) -> None:
    write(here / "train.csv", ["", "", " ", *(f"words {i}" for i in range(37))])
    write(here / "dev.csv", ["", *(f"dev {i}" for i in range(9))])
    data = load_training(task(), here, None)
    assert data.notes == ("3 of 40 train and 1 of 10 dev texts are empty",)
    whole = Split(tuple([*a, *b] for a, b in zip(data.train.texts, data.tuning.texts, strict=True)), np.zeros(40))
    assert count_near([load_reported(task(), here, None).splits["dev"]], whole) == [0]
    write(here / "dev.csv", [f"dev {i}" for i in range(9)])
    data = load_training(task(), here, None, write(here / "own.csv", ["", "other 1"]))
    assert data.notes == ("3 of 40 train and 1 of 2 tuning texts are empty",)


def test_a_pair_is_empty_where_both_its_texts_are(here: Path) -> None:
    rows = [f"a {i},b {i},{'pos' if i % 2 else 'neg'}" for i in range(20)]
    (here / "train.csv").write_text("\n".join(["text,other,label", *rows, "x,,pos", ",,neg"]) + "\n")
    (here / "dev.csv").write_text("text,other,label\n,,pos\ny,,neg\nc,d,pos\n")
    spec = task().model_copy(update={"text": ("text", "other")})
    data = load_training(spec, here, None)
    assert data.notes == ("1 of 22 train and 1 of 3 dev texts are empty",)
    known = Split((["x", ""], ["", ""]), np.zeros(2))
    assert count_near([load_reported(spec, here, None).splits["dev"]], known) == [0]


def test_one_of_texts_of_several_reported_splits_is_refused(here: Path) -> None:
    write(here / "more.csv", ["more 1", "more 2"])
    spec = task().model_copy(update={"files": Files(train="train.csv", dev={"dev": "dev.csv", "more": "more.csv"})})
    with pytest.raises(
        CompressError, match=r"own\.csv: all of its texts are also in splits that scores are reported on"
    ):
        load_training(spec, here, None, write(here / "own.csv", ["words dev 3", "more 1"]))


def test_what_is_wrong_in_it_is_told_with_its_line(here: Path) -> None:
    with pytest.raises(CompressError, match=r"own\.csv: line 4: unknown label 'odd'; known: neg, pos"):
        load_training(task(), here, None, write(here / "own.csv", ["a", "b", "c"], ("neg", "pos", "odd")))
    with pytest.raises(CompressError, match=r"none\.csv: no such file"):
        fingerprint(task(), here, None, here / "none.csv")
    (here / "own.csv").write_text("txt,label\na,pos\n")
    with pytest.raises(CompressError, match=r"own\.csv: no column 'text'; did you mean"):
        load_training(task(), here, None, here / "own.csv")


def test_how_much_is_near_to_train(here: Path) -> None:
    train = write(here / "train.csv", ["one two three four five six seven eight nine", "a b", "c", "d", "e"])
    write(here / "dev.csv", ["two three four five six seven eight x", "two three four five x", "A b!", "nine a", "ab"])
    assert train.exists()
    data, reported = load_training(task(), here, None), load_reported(task(), here, None)
    whole = load_training(task(), here, None, write(here / "own.csv", ["c d"])).train
    assert count_near([data.tuning, reported.splits["dev"]], whole) == [len(data.tuning), 2]
    assert count_near([data.tuning], data.train) == [0]


def test_pairs_are_near_by_a_text_on_either_side(glue: Path) -> None:
    spec = BUILTIN_TASKS["rte"]
    dev, train = load_reported(spec, None, glue).splits["dev"], load_training(spec, None, glue).train
    apart = type(dev)(([f"x {i}" for i in range(6)], [f"y {i}" for i in range(6)]), dev.labels)
    crossed = type(dev)(([f"x {i}" for i in range(6)], train.texts[0][:1] * 6), dev.labels)
    assert count_near([apart, crossed, dev], train) == [0, 6, len(train)]
