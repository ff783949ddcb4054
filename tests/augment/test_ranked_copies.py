"""Copies of passages of queries: the query stays, and copies are ranked against copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from compress.augment import NeighbourProposer, Proposers, augment, read_augmented, write_augmented
from compress.tasks import TASK_KINDS, Split

GOLD = np.array([[1.0, 3], [0, 8], [0, 3], [2, 8], [0, 8]])


def test_queries_stay_and_copies_are_ranked_against_copies(tokenizer: Tokenizer, tmp_path: Path):
    passages = ["good small town", "bad old river", "good old town", "small bad park", "good good river"]
    split = Split((["good town" if query == 3 else "bad river" for query in GOLD[:, 1]], passages), GOLD)
    size = tokenizer.get_vocab_size()
    table = np.random.default_rng(0).normal(size=(size, 8)).astype(np.float32)
    augmented = augment(
        split,
        tokenizer=tokenizer,
        proposers=Proposers(None, NeighbourProposer(table, tokenizer)),
        copies=3,
        probability=0.8,
        candidates=5,
        seed=1,
        fixed=1,
        copied=TASK_KINDS["ranking"].copied,
    )
    made, source = augmented.split, augmented.source
    assert len(made) > 8
    assert made.texts[0] == [split.texts[0][row] for row in source]
    assert all(new != split.texts[1][row] for new, row in zip(made.texts[1], source, strict=True))
    np.testing.assert_array_equal(made.labels[:, 0], GOLD[source, 0])
    copy = np.array([int((source[:place] == row).sum()) for place, row in enumerate(source)])
    np.testing.assert_array_equal(made.labels[:, 1], GOLD[source, 1] + 9 * (copy + 1))  # no number of the split's own
    write_augmented(augmented, tmp_path)
    again = read_augmented(tmp_path)
    assert again.ranks_groups and again.texts == made.texts
    np.testing.assert_array_equal(again.labels, made.labels)
