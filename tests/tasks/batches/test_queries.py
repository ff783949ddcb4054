"""Batches of whole queries, and the denominators of their loss means."""

from __future__ import annotations

import numpy as np
import pytest

from compress.errors import CompressError
from compress.pipeline.stages.calibration import length_stratified
from compress.tasks import Split, TaskBatches, encode, wordpiece
from compress.tasks.batches.queries import EncodedQueries, QuerySampler

SIZES = [1, 3, 2, 7, 20, 4, 4, 9, 1, 33, 5]


def labels(sizes: list[int] = SIZES, seed: int = 0) -> np.ndarray:
    """Return gold with mixed rows; the query numbers have gaps."""
    rng = np.random.default_rng(seed)
    query = rng.permutation(np.repeat(np.arange(len(sizes)) * 2 + 5, sizes))
    return np.column_stack([rng.choice([0.0, 0.0, 1.0, 2.0], len(query)), query])


def queries() -> EncodedQueries:
    gold = labels()
    texts = (["small town"] * len(gold), [f"river {'near ' * (n % 9)}" for n in range(len(gold))])
    encoded = encode(wordpiece(300), Split(texts, gold), 24)
    assert isinstance(encoded, EncodedQueries)
    return encoded


@pytest.mark.parametrize("size", [2, 3, 8, 16, 64])
def test_an_epoch_has_every_pair_once_in_whole_queries(size: int) -> None:
    gold = labels()
    sampler = QuerySampler(gold, size, seed=3)
    epochs = [sampler.epoch(number) for number in range(4)]
    for batches in epochs:
        assert len(batches) == len(sampler)
        np.testing.assert_array_equal(np.sort(np.concatenate(batches)), np.arange(len(gold)))
        assert max(map(len, batches)) <= size
    for number, count in zip(*np.unique(gold[:, 1], return_counts=True), strict=True):
        holding = [batch for batch in epochs[0] if number in gold[batch, 1]]
        assert len(holding) == -(-count // size)  # one batch, or the fewest parts possible
        for batch in holding:  # its rows are adjacent
            assert (np.diff(np.flatnonzero(gold[batch, 1] == number)) == 1).all()
    assert any(not np.array_equal(one, other) for one, other in zip(*epochs[:2], strict=True))
    np.testing.assert_array_equal(np.concatenate(sampler.epoch(1)), np.concatenate(epochs[1]))


def test_the_relevant_passages_of_a_large_query_are_dealt_evenly() -> None:
    gold = np.column_stack([[2.0] * 3 + [1.0] * 3 + [0.0] * 54, np.zeros(60)])
    parts = QuerySampler(gold, 20, seed=0).epoch(0)
    assert [sorted(gold[part, 0])[-2:] for part in parts] == [[1.0, 2.0]] * 3
    other = QuerySampler(gold, 20, seed=0).epoch(1)
    assert {frozenset(part) for part in parts} != {frozenset(part) for part in other}


def test_batches_are_filled() -> None:
    """Small queries share batches with large ones."""
    gold = labels([10] * 12 + [2] * 36)
    assert len(QuerySampler(gold, 16, seed=0)) == 12


def test_a_batch_of_one_pair_teaches_nothing() -> None:
    with pytest.raises(CompressError, match="batch_size is 1; training compares passages of a query with each other"):
        QuerySampler(labels(), 1, seed=0)


def test_counts_add_up_over_whole_queries() -> None:
    encoded = queries()
    gold = encoded.labels
    data = TaskBatches(encoded, batch_size=16, pad_id=0, seed=1)
    batch = data.indices(0)
    groups = data.groups(batch)
    assert groups is not None
    relevance = [gold[batch[groups == number], 0] for number in np.unique(groups)]
    expected = {
        "queries": len(relevance),
        "scored_queries": sum(bool(values.any()) for values in relevance),
        "margins": sum(int((values[:, None] > values[None, :]).sum()) for values in relevance),
        "tokens": int(encoded.lengths[batch].sum()),
    }
    for unit, count in expected.items():
        assert data.counts(unit, batch).sum() == count, unit  # type: ignore[arg-type]


def test_a_batch_has_relevance_and_queries() -> None:
    encoded = queries()
    batch = TaskBatches(encoded, batch_size=16, pad_id=0, seed=1).collate(np.array([3, 1]))
    assert batch["labels"].dtype == np.float32 and batch["labels"].tolist() == encoded.labels[[3, 1], 0].tolist()
    assert batch["groups"].dtype == np.int64 and batch["groups"].tolist() == encoded.labels[[3, 1], 1].tolist()


def test_a_sample_has_whole_queries_and_parts_stay_apart() -> None:
    encoded = queries()
    rows = encoded.stratified_groups(20)
    taken = encoded.take(np.sort(rows))
    assert isinstance(taken, EncodedQueries) and len(rows) == len(set(rows))
    for number in np.unique(taken.labels[:, 1]):
        assert (taken.labels[:, 1] == number).sum() == (encoded.labels[:, 1] == number).sum()
        assert encoded.labels[encoded.labels[:, 1] == number, 0].any()  # it can be scored
    both = taken.concat(encoded)
    assert isinstance(both, EncodedQueries)
    assert len(np.unique(both.labels[:, 1])) == len(np.unique(taken.labels[:, 1])) + len(SIZES)


def test_calibration_sees_passages_of_all_lengths_of_few_large_queries() -> None:
    gold = np.column_stack([np.tile([1.0, 0.0], 300), np.repeat([0, 1], 300)])
    texts = (["small town"] * 600, [f"river {'near ' * (n % 15)}" for n in range(600)])
    encoded = encode(wordpiece(300), Split(texts, gold), 32)
    feeds = length_stratified(encoded, 0, 128)
    lengths = np.concatenate([feed["attention_mask"].sum(axis=1) for feed in feeds])
    assert len(lengths) == 128
    assert set(lengths) == set(encoded.lengths)
