from __future__ import annotations

import numpy as np
import pytest

from compress.spec.task import Synthetic, TaskSpec
from compress.tasks import Split
from compress.tasks.loading.tuning import carve


def spec(examples: int = 2000, fraction: float = 0.1, kind: str = "classification") -> TaskSpec:
    fields = {"tuning_examples": examples, "tuning_fraction": fraction, "synthetic": Synthetic(generator="sentiment")}
    metric = "accuracy" if kind == "classification" else "pearson"
    return TaskSpec.model_validate(
        {"name": "t", "kind": kind, "text": ("x",), "label": "y", "metrics": (metric,)} | fields
    )


def split(texts: list[str], labels: list[int] | np.ndarray) -> Split:
    return Split((texts,), np.asarray(labels))


def many(count: int, shares: tuple[float, ...] = (0.5, 0.5)) -> Split:
    labels = np.repeat(np.arange(len(shares)), [round(count * share) for share in shares])
    return split([f"text {i}" for i in range(len(labels))], np.random.default_rng(0).permutation(labels))


@pytest.mark.parametrize(
    ("count", "examples", "fraction", "expected"),
    [(1000, 2000, 0.1, 100), (1000, 50, 0.1, 50), (1000, 2000, 0.25, 250)],
)
def test_sizes(count: int, examples: int, fraction: float, expected: int) -> None:
    train, tuning, _ = carve(spec(examples, fraction), many(count), "here")
    assert len(tuning) == expected
    assert sorted([*train, *tuning]) == list(range(count))
    assert (np.diff(train) > 0).all() and (np.diff(tuning) > 0).all()  # file order


def test_classes_keep_their_shares() -> None:
    data = many(2000, (0.05, 0.25, 0.7))
    _, tuning, _ = carve(spec(), data, "here")
    assert np.bincount(data.labels[tuning]).tolist() == [10, 50, 140]


def test_regression_is_not_stratified() -> None:
    data = split([f"text {i}" for i in range(200)], np.linspace(0, 5, 200, dtype=np.float32))
    assert len(carve(spec(kind="regression"), data, "here")[1]) == 20


def test_copies_of_a_text_never_stand_on_both_sides() -> None:
    """Also if they differ in case, spacing or label."""
    texts = [f"{('A text', 'a  Text')[i % 2]} number {i % 60}" for i in range(600)]
    data = split(texts, [i % 3 % 2 for i in range(600)])
    train, tuning, _ = carve(spec(fraction=0.3), data, "here")
    key = [" ".join(text.lower().split()) for text in texts]
    assert len(tuning) > 0.2 * 600
    assert {key[i] for i in train}.isdisjoint(key[i] for i in tuning)


def test_the_same_texts_are_drawn_from_a_file_in_another_order() -> None:
    data = many(500)
    order = np.random.default_rng(1).permutation(500)
    shuffled = data.select(order)
    drawn = [set(part.select(carve(spec(), part, "here")[1]).texts[0]) for part in (data, shuffled)]
    assert drawn[0] == drawn[1]


def test_tuning_is_not_the_start_of_the_file() -> None:
    _, tuning, _ = carve(spec(), many(1000), "here")
    assert 300 < tuning.mean() < 700


def test_a_rare_class_stays_in_train() -> None:
    data = split([f"text {i}" for i in range(21)], [0] * 20 + [1])
    train, tuning, _ = carve(spec(fraction=0.9), data, "here")
    assert 20 in train and len(tuning)
    assert set(data.labels[train]) == {0, 1}


def test_small_data_still_give_one_example() -> None:
    assert len(carve(spec(), many(6), "here")[1]) == 1


def test_a_class_whose_quota_is_none_has_an_example_on_each_side() -> None:
    data = split([f"text {i}" for i in range(200)], [int(i % 50 == 7) for i in range(200)])
    train, tuning, notes = carve(spec(), data, "here")
    assert np.bincount(data.labels[tuning]).tolist() == [19, 1]
    assert np.bincount(data.labels[train]).tolist() == [177, 3] and notes == ()
    first = carve(spec(), data.select(np.flatnonzero(data.labels == 0)), "here").tuning
    others = set(data.select(np.flatnonzero(data.labels == 0)).select(first).texts[0])
    assert set(data.select(tuning).texts[0]) - {data.texts[0][i] for i in np.flatnonzero(data.labels)} <= others


def test_a_class_of_one_source_stays_in_train() -> None:
    rare = [f"these seven words are all in each text {i}" for i in range(4)]
    data = split([*(f"text {i}" for i in range(196)), *rare], [0] * 196 + [1] * 4)
    assert set(data.labels[carve(spec(), data, "here").tuning]) == {0}


@pytest.mark.parametrize(("classes", "expected"), [(20, 20), (40, 20)])
def test_as_many_classes_as_the_split_has_room_for(classes: int, expected: int) -> None:
    rare = [label for label in range(1, classes) for _ in range(2)]
    data = split([f"text {i}" for i in range(200)], [0] * (200 - len(rare)) + rare)
    train, tuning, _ = carve(spec(), data, "here")
    assert len(tuning) == 20 and len(set(data.labels[tuning])) == expected
    assert set(data.labels[train]) == set(range(classes))
