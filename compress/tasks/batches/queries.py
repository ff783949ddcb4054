"""Token ids of queries' passages, and batches with all passages of each of their queries."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from ...errors import CompressError
from ...losses.loss import MeanOver
from ...metrics.ranks import queries_of, scored_queries
from .encoded import Encoded

TOO_FEW = "training compares {}s of a {} with each other, so expected at least 2"


@dataclass(frozen=True)
class EncodedQueries(Encoded):
    """Rows are pairs of a query and a passage; `labels` float64 [pair, 2]: the relevance, and the number of the query."""

    @property
    def pairs(self) -> np.ndarray:
        """[pair, 2]: how right the second text is, 0 or more, and the number of the group."""
        return self.labels

    def groups(self, indices: np.ndarray) -> np.ndarray:
        return self.pairs[indices, 1].astype(np.int64)

    def counts(self, unit: MeanOver, indices: np.ndarray) -> np.ndarray:
        """Return counts per row. For "queries" and "scored_queries", a query's first row among `indices` counts 1 and the others 0; for
        "margins", each row counts the less relevant rows of its query."""
        counted = np.zeros(len(indices), np.int64)
        labels = self.pairs[indices]
        for rows in queries_of(labels):
            relevance = labels[rows, 0]
            if unit == "margins":
                counted[rows] = np.searchsorted(np.sort(relevance), relevance)
            elif unit == "queries" or (relevance > 0).any():
                counted[rows[0]] = 1
        return self.lengths[indices] if unit == "tokens" else counted

    def concat(self, other: Encoded) -> EncodedQueries:
        """Return the rows of both, in this order, with separate query numbers."""
        return super().concat(replace(other, labels=renumbered_after(self.labels, other.labels)))

    def stratified_groups(self, count: int) -> np.ndarray:
        """Return whole queries, evenly spread over those sorted by mean length, as many as have `count` rows on average, but at least one;
        only queries that can be scored, if there are any."""
        scored = scored_queries(self.pairs) or queries_of(self.pairs)
        queries = sorted(scored, key=lambda rows: float(self.lengths[rows].mean()))
        most = max(1, min(count * len(queries) // max(1, sum(map(len, queries))), len(queries)))
        return np.concatenate([queries[i] for i in np.linspace(0, len(queries) - 1, most).round().astype(int)])

    def targets(self, indices: np.ndarray, length: int) -> dict[str, np.ndarray]:
        """Return `labels` float32 [pair], the relevance, and `groups` int64 [pair], the number of the query."""
        return {"labels": self.pairs[indices, 0].astype(np.float32), "groups": self.groups(indices)}


class QuerySampler:
    """Batches of whole queries, at most `batch_size` pairs each. The order depends only on (seed, epoch).

    A larger query is split into the fewest possible parts, whose sizes differ by at most one. In every epoch its pairs are distributed
    anew, in order of relevance, so that each part gets its share of the relevant ones. Which sizes form a batch is fixed, so that every
    epoch has equally many batches; which queries of a size do is random in every epoch.
    """

    def __init__(self, labels: np.ndarray, batch_size: int, seed: int) -> None:
        if batch_size < 2:
            raise CompressError(f"batch_size is {batch_size}; {TOO_FEW.format('passage', 'query')}")
        self._labels, self._seed = np.asarray(labels), seed
        self._queries = queries_of(self._labels)
        self._parts = [-(-len(rows) // batch_size) for rows in self._queries]
        sizes = [
            len(rows[part::parts])
            for rows, parts in zip(self._queries, self._parts, strict=True)
            for part in range(parts)
        ]
        self._bins = _pack_bins(sizes, batch_size)

    def __len__(self) -> int:
        return len(self._bins)

    def epoch(self, number: int) -> list[np.ndarray]:
        """Return index arrays in shuffled order; every pair once, those of a query, or of a part of one, adjacent."""
        rng = np.random.default_rng([self._seed % 2**64, number])
        ready: dict[int, list[np.ndarray]] = defaultdict(list)
        for index in rng.permutation(len(self._queries)):
            for part in self._deal_rows(int(index), rng):
                ready[len(part)].append(part)
        batches = [np.concatenate([ready[size].pop() for size in sizes]) for sizes in self._bins]
        return [batches[i] for i in rng.permutation(len(batches))]

    def _deal_rows(self, query: int, rng: np.random.Generator) -> list[np.ndarray]:
        rows, parts = self._queries[query], self._parts[query]
        if parts == 1:
            return [rows]
        rows = rng.permutation(rows)
        rows = rows[np.argsort(-self._labels[rows, 0], kind="stable")]
        return [rows[part::parts] for part in range(parts)]


def renumbered_after(before: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Return `pairs` with group numbers above those of the pairs `before`; both [pair, 2]."""
    after = pairs.copy()
    after[:, 1] += before[:, 1].max(initial=-1) + 1
    return after


def largest_query(labels: np.ndarray) -> int:
    """Return the number of passages of the largest query."""
    return max(map(len, queries_of(labels)), default=0)


def _pack_bins(sizes: list[int], room: int) -> list[list[int]]:
    """Return the sizes in bins of at most `room`, in descending order, each in the fullest bin where it fits (best fit decreasing)."""
    bins: list[list[int]] = []
    by_room: dict[int, list[int]] = defaultdict(list)  # room left -> bins
    for size in sorted(sizes, reverse=True):
        left = next((left for left in range(size, room) if by_room[left]), None)
        if left is None:
            bins.append([])
            left, place = room, len(bins) - 1
        else:
            place = by_room[left].pop()
        bins[place].append(size)
        by_room[left - size].append(place)
    return bins
