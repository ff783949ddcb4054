"""Copies of passages of queries and of endings of questions: the first text is unchanged, and copies are ranked among copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tokenizers import Tokenizer

from compress.augment import Augmented, NeighbourProposer, Proposers, augment, read_augmented, write_augmented
from compress.metrics.ranks import queries_of
from compress.tasks import TASK_KINDS, Split

Kind = Literal["ranking", "choice"]
GOLD = np.array([[1.0, 3], [0, 8], [0, 3], [2, 8], [0, 8]])
PASSAGES = ["good small town", "bad old river", "good old town", "small bad park", "good good river"]
ENDINGS = ["good small town", "bad", "the 7", "", "old old river", "small bad park", "the river", "7 7", "town"]


def _copies(split: Split, tokenizer: Tokenizer, kind: Kind, **how: Any) -> Augmented:
    table = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), 8)).astype(np.float32)
    proposers = Proposers(None, NeighbourProposer(table, tokenizer))
    copied = TASK_KINDS[kind].labels.copied
    return augment(split, tokenizer=tokenizer, proposers=proposers, candidates=5, fixed=1, copied=copied, **how)


def test_queries_stay_and_copies_are_ranked_against_copies(tokenizer: Tokenizer, tmp_path: Path):
    split = Split((["good town" if query == 3 else "bad river" for query in GOLD[:, 1]], PASSAGES), GOLD)
    augmented = _copies(split, tokenizer, "ranking", copies=3, probability=0.8, seed=1)
    copies, source = augmented.split, augmented.source
    assert len(copies) > 8
    assert copies.texts[0] == [split.texts[0][row] for row in source]
    np.testing.assert_array_equal(copies.labels[:, 0], GOLD[source, 0])
    assert not set(copies.labels[:, 1]) & set(GOLD[:, 1])  # no query number of the original split
    write_augmented(augmented, tmp_path)
    again = read_augmented(tmp_path)
    assert again.ranks_groups and again.texts == copies.texts
    np.testing.assert_array_equal(again.labels, copies.labels)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("probability", [0.15, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["ranking", "choice"])
def test_each_group_of_copies_has_all_of_its_rows(tokenizer: Tokenizer, kind: Kind, probability: float, seed: int):
    """Also rows that no draw changed, or that have no word to replace; rows of a group need not be adjacent."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(6), rng.integers(2, 5, 6))
    if kind == "ranking":
        rng.shuffle(groups)
    labels = np.zeros((len(groups), 2), np.float64 if kind == "ranking" else np.int64)
    labels[:, 1] = groups
    for rows in queries_of(labels):
        labels[rng.choice(rows), 0] = 1
    texts = [f"good town {group}" for group in groups], rng.choice(ENDINGS, len(groups)).tolist()
    split = Split(texts, labels)
    augmented = _copies(split, tokenizer, kind, copies=8, probability=probability, seed=seed)
    copies, source = augmented.split, augmented.source
    assert copies.texts[0] == [split.texts[0][row] for row in source]
    np.testing.assert_array_equal(copies.labels[:, 0], labels[source, 0])
    owners = {tuple(rows): number for number, rows in enumerate(queries_of(labels))}
    earlier_copies = set[tuple[int, tuple[str, ...]]]()
    for rows in queries_of(copies.labels):
        assert tuple(source[rows]) in owners, (
            "a group of copies has the rows of one group of the split, all and in order"
        )
        copy = tuple(copies.texts[1][row] for row in rows)
        assert copy != tuple(split.texts[1][row] for row in source[rows]), "a row differs from its source"
        assert (owners[tuple(source[rows])], copy) not in earlier_copies, "no group is there twice"
        earlier_copies.add((owners[tuple(source[rows])], copy))


def test_a_row_that_no_draw_changes_stays_beside_those_that_change(tokenizer: Tokenizer):
    split = Split(
        (["good town"] * 3, ["the 7", "good small town", "bad old river"]), np.array([[1, 0], [0, 0], [0, 0]])
    )
    augmented = _copies(split, tokenizer, "choice", copies=5, probability=1.0, seed=0)
    assert augmented.source.tolist() == [0, 1, 2] * 5
    assert augmented.split.texts[1][::3] == ["the 7"] * 5
    assert augmented.split.labels[:, 0].tolist() == [1, 0, 0] * 5
