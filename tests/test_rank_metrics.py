"""nDCG@10 and MRR@10 against scikit-learn, and against all permutations of passages with equal scores."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from compress.errors import CompressError
from compress.metrics import FEWEST, RanksHeadline
from compress.metrics.ranks import best_passages, queries_of
from compress.stats.significance import paired_bootstrap

NDCG, MRR, BOTH = RanksHeadline(("ndcg@10",)), RanksHeadline(("mrr@10",)), RanksHeadline(("ndcg@10", "mrr@10"))


def drawn(seed: int, *, tied: bool, queries: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Return scores [passage, 1] and gold, with the rows of all queries mixed."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 25, queries)
    query = rng.permutation(np.repeat(np.arange(queries) * 3, sizes))
    scores = rng.integers(0, 4, len(query)) if tied else rng.normal(size=len(query))
    relevance = rng.choice([0, 0, 0, 1, 2, 0.5], len(query))
    return scores[:, None].astype(float), np.column_stack([relevance, query])


@pytest.mark.parametrize("tied", [False, True])
def test_ndcg_is_that_of_scikit_learn(tied: bool):
    outputs, gold = drawn(0, tied=tied)
    each = [ndcg_score([gold[rows, 0]], [outputs[rows, 0]], k=10) for rows in queries_of(gold) if gold[rows, 0].any()]
    assert NDCG(outputs, gold) == pytest.approx(100 * np.mean(each), abs=1e-9)


def reciprocal_rank(relevance: np.ndarray) -> float:
    """Return the reciprocal rank of ordered passages, 0 beyond rank 10."""
    return next((1 / rank for rank, value in enumerate(relevance[:10], 1) if value > 0), 0.0)


def test_mrr_is_that_of_the_sorted_passages():
    outputs, gold = drawn(1, tied=False)
    each = [
        reciprocal_rank(gold[rows[np.argsort(-outputs[rows, 0])], 0])
        for rows in queries_of(gold)
        if gold[rows, 0].any()
    ]
    assert MRR(outputs, gold) == pytest.approx(100 * np.mean(each), abs=1e-9)


@pytest.mark.parametrize("relevance", [[1, 0, 0, 0], [0, 2, 1, 0], [1, 1, 1, 1], [0, 0, 0, 1]])
@pytest.mark.parametrize("scores", [[1, 1, 1, 1], [2, 1, 1, 0], [1, 1, 2, 2], [3, 3, 3, 1]])
def test_of_equal_scores_a_metric_is_the_mean_over_their_orders(relevance: list[float], scores: list[float]):
    gold = np.column_stack([relevance, np.zeros(4)])
    orders = [order for order in permutations(range(4)) if all(scores[a] >= scores[b] for a, b in pairwise(order))]
    expected = np.mean([reciprocal_rank(np.array(relevance)[list(order)]) for order in orders])
    assert MRR(np.array(scores, float)[:, None], gold) == pytest.approx(100 * expected)


def test_equal_scores_of_many_passages_count_to_rank_ten_alone():
    gold = np.column_stack([[1.0] + [0.0] * 29, np.zeros(30)])
    expected = sum(1 / rank for rank in range(1, 11)) / 30
    assert MRR(np.zeros((30, 1)), gold) == pytest.approx(100 * expected)
    below = np.zeros((30, 1))
    below[1:11] = 1.0  # ten others come first
    assert MRR(below, gold) == 0 and NDCG(below, gold) == 0


def test_neither_the_order_of_rows_nor_queries_without_relevant_passages_count():
    outputs, gold = drawn(2, tied=True)
    order = np.random.default_rng(0).permutation(len(gold))
    more = np.concatenate([gold, [[0, 1000], [0, 1000]]])
    assert BOTH(outputs[order], gold[order]) == pytest.approx(BOTH(outputs, gold), abs=1e-12)
    assert BOTH(np.concatenate([outputs, [[1], [2]]]), more) == pytest.approx(BOTH(outputs, gold), abs=1e-12)
    assert BOTH(outputs, gold) == pytest.approx((NDCG(outputs, gold) + MRR(outputs, gold)) / 2)


def test_nothing_relevant_cannot_be_scored():
    with pytest.raises(CompressError, match="relevance above 0, found none"):
        NDCG(np.zeros((2, 1)), np.zeros((2, 2)))


def test_resamples_draw_queries():
    outputs, gold = drawn(3, tied=False, queries=60)
    other = outputs + np.random.default_rng(4).normal(size=outputs.shape)
    samples = BOTH.resampled([(outputs, other)], gold, 4000, np.random.default_rng(5))
    values = BOTH._of_queries(outputs, gold)
    assert samples.shape == (2, 4000)
    assert samples[0].mean() == pytest.approx(BOTH(outputs, gold), abs=0.2)
    assert samples[0].std() == pytest.approx(100 * values.std() / np.sqrt(len(values)), rel=0.05)


def test_a_difference_on_few_queries_may_be_chance():
    rows = 2 * 40
    gold = np.column_stack([np.tile([1.0, 0.0], 40), np.repeat(np.arange(40), 2)])
    right, wrong = gold[:, :1].copy(), gold[:, :1].copy()
    for changed in (FEWEST - 1, 20):
        wrong[: 2 * changed] = 1 - right[: 2 * changed]
        assert BOTH.count_changed([(right, wrong)], gold) == changed
        points, low, high = paired_bootstrap(BOTH, right, wrong, gold)
        assert points < 0 and (high >= 0) == (changed < FEWEST), (changed, low, high, rows)


def test_the_best_passage_of_equal_ones_is_the_first():
    gold = np.array([[0, 4], [1, 1], [1, 4], [0, 1], [0, 4]])
    np.testing.assert_array_equal(best_passages(np.array([1.0, 2, 3, 2, 3])[:, None], gold), [1, 2])
