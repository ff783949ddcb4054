"""Metrics of the ranking of a query's passages, on weighted queries. Imports numpy alone.

`gold` is a number array [passage, 2]: relevance, 0 or more, and number of the query, whose passages need not be adjacent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..errors import CompressError
from .correlation import draws
from .headline import FEWEST, Headline, Pairs, check_lengths, check_names

DEPTH = 10  # best passages that count
_DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))
_SAME = 1e-9  # tolerance for a query's metrics, 0 to 1


@dataclass(frozen=True)
class RanksHeadline(Headline):
    """Headline for one output, a score, of each passage of queries. Each query counts once, unless it has no relevant passage.

    `ndcg@10`: Σ relevance / log2(1 + rank) over the best ten passages, divided by the maximum over all orders (Järvelin & Kekäläinen 2002,
    ACM TOIS 20(4), with the relevance itself as gain, as in trec_eval). `mrr@10`: 1 / rank of the first relevant passage, 0 beyond rank
    ten. For passages with equal scores, a metric is its mean over all their orders (McSherry & Najork 2008, ECIR), so that neither the
    order of a file nor a model with constant scores gains by it. Resamples draw queries.
    """

    metrics: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.metrics, list(RANK_METRICS))

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        return 100 * float(self._of_queries(outputs, gold).mean())

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.ravel(base) != np.ravel(other)

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        return None

    def count_changed(self, pairs: Pairs, gold: np.ndarray) -> int:
        changed = [
            np.abs(self._of_queries(base, gold) - self._of_queries(other, gold)) > _SAME for base, other in pairs
        ]
        return int(np.any(changed, axis=0).sum())

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return points on resampled queries. If models differ on too few queries to be told apart, two are added; on each, one model ranks
        the only relevant passage second, and the other first."""
        values = np.stack([self._of_queries(outputs, gold) for pair in pairs for outputs in pair])
        if self.count_changed(pairs, gold) < FEWEST:
            values = np.concatenate([values, self._added_queries(len(values))], axis=1)
        queries = values.shape[1]
        parts = [100 * values @ weights.T / queries for weights in draws(queries, samples, rng)]
        return np.concatenate(parts, axis=1)

    def _of_queries(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray:
        """Return the mean of the metrics, 0 to 1, for each query with a relevant passage. Raises `CompressError` if there is none."""
        scores = np.ravel(outputs).astype(np.float64)
        means = [self._of_query(scores[rows], gold[rows, 0]) for rows in scored_queries(gold)]
        if not means:
            raise CompressError(
                "expected a query with a passage of a relevance above 0, found none: nothing can be scored"
            )
        return np.array(means)

    def _of_query(self, scores: np.ndarray, relevance: np.ndarray) -> float:
        order = np.argsort(-scores, kind="stable")
        ordered, gains = scores[order], relevance[order].astype(np.float64)
        bounds = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist(), len(ordered)]
        return float(np.mean([RANK_METRICS[name](gains, bounds) for name in self.metrics]))

    def _added_queries(self, models: int) -> np.ndarray:
        """Return the metrics of two added queries, [model, 2]."""
        right, wrong = (
            np.mean([RANK_METRICS[name](np.array(gains), [0, 1, 2]) for name in self.metrics])
            for gains in ([1.0, 0.0], [0.0, 1.0])
        )
        return np.array([[wrong, right] if index % 2 == 0 else [right, wrong] for index in range(models)])


def queries_of(gold: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each query, in order of the queries' numbers."""
    numbers = np.asarray(gold)[:, 1]
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1) if len(order) else []


def scored_queries(gold: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each query that has a relevant passage."""
    return [rows for rows in queries_of(gold) if (gold[rows, 0] > 0).any()]


def best_passages(outputs: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return the row of each query's best passage, int64 [query]; among equal scores, the first in the file."""
    scores = np.ravel(outputs)
    return np.array([np.sort(rows)[np.argmax(scores[np.sort(rows)])] for rows in queries_of(gold)], np.int64)


def _ndcg(gains: np.ndarray, bounds: Sequence[int]) -> float:
    """Return nDCG of `gains` in the order of the scores; those from one of `bounds` to the next have equal scores, and each gets their
    mean."""
    shared = np.concatenate([np.full(end - start, gains[start:end].mean()) for start, end in pairwise(bounds)])
    best = np.sort(gains)[::-1]
    dcg, ideal = (float(part[:DEPTH] @ _DISCOUNTS[: len(part[:DEPTH])]) for part in (shared, best))
    return dcg / ideal


def _mrr(gains: np.ndarray, bounds: Sequence[int]) -> float:
    """Return the mean of 1 / rank of the first relevant passage, over all orders of passages with equal scores, delimited by `bounds`."""
    for start, end in pairwise(bounds):
        count, relevant = end - start, int((gains[start:end] > 0).sum())
        if relevant:
            return _first_of(count, relevant, start)
    return 0.0


def _first_of(count: int, relevant: int, before: int) -> float:
    """Return the mean of 1 / rank of the first of `relevant` among `count` passages in random order, after `before` others."""
    total, none_yet = 0.0, 1.0
    for index in range(min(count - relevant + 1, DEPTH - before)):
        here = none_yet * relevant / (count - index)
        total += here / (before + index + 1)
        none_yet -= here
    return total


RANK_METRICS: dict[str, Callable[[np.ndarray, Sequence[int]], float]] = {"ndcg@10": _ndcg, "mrr@10": _mrr}
