"""The tuning split divides no source: neither the extracts of one sentence nor the pairs of one premise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from whole import load_task

from compress.spec.task import Synthetic, TaskSpec
from compress.tasks import BUILTIN_TASKS, Split
from compress.tasks.loading.grouping import NOWHERE, RUN, _components, source_groups
from compress.tasks.loading.tuning import carve

SPEC = TaskSpec(name="t", text=("x",), label="y", metrics=("accuracy",), synthetic=Synthetic(generator="sentiment"))


def single(*texts: str) -> Split:
    return Split((list(texts),), np.arange(len(texts)) % 2)


def pairs(*texts: tuple[str, str]) -> Split:
    return Split(tuple(map(list, zip(*texts, strict=True))), np.arange(len(texts)) % 2)


def words(name: str, count: int) -> str:
    return " ".join(f"{name}{i}" for i in range(count))


def together(split: Split, most: int = 100) -> list[set[int]]:
    groups = source_groups(split, most)
    return [
        set(np.flatnonzero(groups == group).tolist()) for group in dict.fromkeys(groups[groups != NOWHERE].tolist())
    ]


def test_extracts_are_with_their_sentence_whatever_their_case_and_punctuation() -> None:
    sentence = words("a", 20)
    split = single(sentence, words("a", 9), "A3, a4!", "a19", words("b", 20), "b1 b2", "c")
    assert together(split) == [{0, 1, 2, 3}, {4, 5}, {6}]


def test_texts_that_overlap_by_a_long_run_of_words_are_together() -> None:
    shared, brief = words("s", RUN), words("t", RUN - 1)
    assert together(single(f"x {shared}", f"{shared} y", f"x {brief}", f"{brief} y")) == [{0, 1}, {2}, {3}]


def test_a_phrase_of_several_sentences_joins_none_of_them_and_has_no_group() -> None:
    split = single(f"the film {words('a', 9)}", f"the film {words('b', 9)}", "The film", "film")
    assert together(split) == [{0}, {1}]
    assert source_groups(split, 100).tolist()[2:] == [NOWHERE, NOWHERE]


def test_parts_of_words_and_runs_over_two_texts_are_no_extracts() -> None:
    assert together(single("a part", "art")) == [{0}, {1}]
    first, second = words("a", RUN), words("b", RUN)
    assert together(single(first, second, "a6 b0")) == [{0}, {1}, {2}]


def test_a_long_run_that_very_many_texts_share_joins_none() -> None:
    legal = words("legal", 10)
    split = single(*(f"{words(f'w{i}', 3)} {legal}" for i in range(6)), legal)
    assert together(split, most=7) == [set(range(7))]
    assert together(split, most=5) == [{i} for i in range(6)]  # the boilerplate text belongs to all of them


def test_pairs_are_together_by_a_text_on_either_side() -> None:
    split = pairs(("p", "h1"), ("P.", "h2"), ("h2", "q"), ("r", "h3"), ("s", "h4"))
    assert together(split) == [{0, 1, 2}, {3}, {4}]


def test_a_text_of_very_many_pairs_joins_none() -> None:
    split = pairs(*((f"review {i // 2}", f"aspect {i % 2}") for i in range(20)))
    assert len(together(split, most=20)) == 1
    assert together(split, most=5) == [{i, i + 1} for i in range(0, 20, 2)]


def test_components_are_those_of_scipy() -> None:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    for seed, edges in enumerate((0, 1, 300, 480, 500, 2000)):
        left, right = np.random.default_rng(seed).integers(0, 500, (2, edges))
        labels = connected_components(coo_array((np.ones(edges), (left, right)), shape=(500, 500)), directed=False)[1]
        lowest = [np.flatnonzero(labels == label)[0] for label in labels]
        assert _components(left, right, 500).tolist() == lowest
    chain = np.random.default_rng(9).permutation(500)
    assert set(_components(chain[:-1], chain[1:], 500)) == {0}


def sentences(count: int, phrases: int) -> Split:
    """Return each sentence and `phrases` extracts of it."""
    texts = [
        text
        for number in range(count)
        for text in (words(f"s{number}w", 12), *(words(f"s{number}w", 3 + i) for i in range(phrases)))
    ]
    return single(*texts)


def test_no_sentence_is_parted_and_classes_keep_their_shares() -> None:
    split = sentences(200, 4)
    train, tuning, notes = carve(SPEC, split, "here")
    source = np.arange(1000) // 5
    assert notes == ()
    assert not set(source[train]) & set(source[tuning])
    assert abs(len(tuning) - 100) <= 5
    assert abs(np.bincount(split.labels[tuning])[0] - 50) <= 3


def test_large_groups_are_not_drawn_first() -> None:
    """A group is drawn with the same probability whatever its size."""
    texts = [f"alone{i}" for i in range(900)]
    texts += [text for n in range(100) for text in (words(f"s{n}w", 12), *(words(f"s{n}w", 3 + i) for i in range(8)))]
    _, tuning, _ = carve(SPEC.model_copy(update={"tuning_fraction": 0.3}), single(*texts), "here")
    assert 0.4 < (tuning < 900).mean() < 0.6


def test_a_group_larger_than_the_split_stays_in_train() -> None:
    chain = [words(f"c{i}w", 9) for i in range(41)]
    split = single(*(f"{a} {b}" for a, b in pairwise(chain)), *(f"alone{i}" for i in range(160)))
    train, tuning, _ = carve(SPEC, split, "here")
    assert len(tuning) == 20 and tuning.min() >= 40 and set(range(40)) <= set(train.tolist())


def test_sources_that_cannot_be_kept_apart_are_noted() -> None:
    chain = [words(f"c{i}w", 9) for i in range(201)]
    train, tuning, notes = carve(SPEC, single(*(f"{a} {b}" for a, b in pairwise(chain))), "here")
    assert len(tuning) == 20 and len(train) == 180
    assert notes == (
        "the tuning split could not keep common sources apart, as too many texts of train share their words: scores on it look better "
        "than on new texts; name a file of other texts with --tuning, or as `tuning` in the task file",
    )


def test_texts_that_are_all_alike_still_give_a_split_that_parts_no_copies() -> None:
    texts = [f"please write a review of the product number {i % 150} now" for i in range(300)]
    _, tuning, notes = carve(SPEC, single(*texts), "here")
    assert notes == ()
    assert len(tuning) == 28  # not 30: a class has an odd quota, but only pairs of copies
    assert {i + 150 for i in tuning if i < 150} == {i for i in tuning if i >= 150}


def test_the_carve_is_the_same_in_another_order() -> None:
    split = sentences(60, 4)
    order = np.random.default_rng(1).permutation(len(split))
    drawn = [set(part.select(carve(SPEC, part, "here")[1]).texts[0]) for part in (split, split.select(order))]
    assert drawn[0] == drawn[1]


@pytest.mark.shared
@pytest.mark.parametrize(("task", "columns"), [("mnli", 2), ("qnli", 2), ("qqp", 2), ("rte", 2), ("cola", 1)])
def test_no_text_of_glue_stands_on_both_sides(real_glue: Path, task: str, columns: int) -> None:
    data = load_task(BUILTIN_TASKS[task], None, real_glue)
    known = {text for column in data.train.texts for text in column}
    assert len(data.train.texts) == columns
    assert known.isdisjoint(text for column in data.tuning.texts for text in column)


def runs_of(split: Split) -> Iterator[tuple[str, ...]]:
    """Yield every run of seven words, without the grouping's own code."""
    for text in split.texts[0]:
        tokens = re.findall(r"[^\W_]+", text.lower())
        yield from (tuple(tokens[start : start + 7]) for start in range(len(tokens) - 6))


@pytest.mark.shared
def test_phrases_of_sst2_are_no_extracts_of_the_sentences_that_it_trains_on(real_glue: Path) -> None:
    data = load_task(BUILTIN_TASKS["sst2"], None, real_glue)
    known = " " + " \n ".join(data.train.texts[0]) + " "
    assert len(data.tuning) == 2000
    assert not [text for text in data.tuning.texts[0] if f" {text.strip()} " in known]
    tuning, train = (set(runs_of(part)) for part in (data.tuning, data.train))
    assert len(tuning) > 2000
    assert tuning.isdisjoint(train)
    shares = [np.bincount(part.labels) / len(part) for part in (data.tuning, data.train)]
    assert np.abs(shares[0] - shares[1]).max() < 0.005
