"""Correlations of scores with gold scores, on weighted examples. Imports numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .headline import CHUNK, FEWEST, Headline, Pairs, check_lengths, check_names


@dataclass(frozen=True)
class CorrelationHeadline(Headline):
    """Headline for one output, a score, or the first of several; its scale and offset do not matter."""

    metrics: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.metrics, list(CORRELATIONS))

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        columns = [_first_output(outputs), np.asarray(gold, dtype=np.float64)]
        return float(self.of_weights(columns, np.ones((1, len(gold))))[0, 0])

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.abs(_standard(base) - _standard(other)) > 1e-6

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        return None

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return points on resampled examples. Models usually differ a little everywhere, which the bootstrap reflects; only if they do
        not, two examples are added, on each of which one model answers as for another text."""
        columns = [_first_output(outputs) for pair in pairs for outputs in pair]
        columns.append(gold.astype(np.float64))
        if self.count_changed(pairs, gold) < FEWEST:
            columns = _with_mistaken(columns)
        distinct, places = _distinct(columns[:-1])
        parts = [
            self.of_weights([*distinct, columns[-1]], weights) for weights in draws(len(columns[-1]), samples, rng)
        ]
        return np.concatenate(parts, axis=1)[places]

    def of_weights(self, columns: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return points [output, sample]; the last column is the gold score; `weights` [sample, example]."""
        scores = []
        for name in self.metrics:
            prepared = [CORRELATIONS[name](column, weights) for column in columns]
            gold, gold_square = prepared[-1]
            outputs = [_correlation(values, square, gold, gold_square, weights) for values, square in prepared[:-1]]
            scores.append(outputs)
        return 100 * np.mean(scores, axis=0)


def _first_output(outputs: np.ndarray) -> np.ndarray:
    """Return float64 [example] from outputs [example] or [example, output]."""
    return (outputs if outputs.ndim == 1 else outputs[:, 0]).astype(np.float64)


def _distinct(columns: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[int]]:
    """Return the distinct columns, and the index of each column among them, so that a base shared by seeds is scored once."""
    known: dict[bytes, int] = {}
    places = [known.setdefault(column.tobytes(), len(known)) for column in columns]
    return [columns[places.index(index)] for index in range(len(known))], places


def _standard(output: np.ndarray) -> np.ndarray:
    values = _first_output(output)
    centred = values - values.mean()
    return centred / (centred.std() or 1.0)


def _with_mistaken(columns: list[np.ndarray]) -> list[np.ndarray]:
    """Return the columns with two more examples whose gold score is the lower quartile: one model answers with its own lower quartile, the
    other, which is wrong, with its upper one."""
    lower, upper = np.quantile(columns, [0.25, 0.75], axis=1)
    added = np.stack([lower, lower], axis=1)
    added[:-1:2, 0], added[1:-1:2, 1] = upper[:-1:2], upper[1:-1:2]
    return [np.append(column, rows) for column, rows in zip(columns, added, strict=True)]


def draws(examples: int, samples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield how often each example is drawn, [sample, example], a few samples at a time."""
    step = max(1, CHUNK // examples)
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        drawn = rng.integers(examples, size=(rows, examples))
        drawn += np.arange(rows)[:, None] * examples
        counts = np.bincount(drawn.ravel(), minlength=rows * examples)
        yield counts.reshape(rows, examples).astype(np.float64)


def _center_values(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values minus their weighted mean [sample, example], and their weighted square [sample]."""
    values = values - values.mean()  # first the overall mean, to avoid cancellation if it is large
    scale = np.abs(values).max() or 1.0
    values = values / scale
    centred = values - (weights @ values / len(values))[:, None]
    square = np.einsum("se,se,se->s", weights, centred, centred)
    # A resample of a single value has no spread; the rest is rounding error.
    return centred, np.where(square > 1e-24 * len(values), square, 0.0)


def _center_ranks(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for mean ranks within each resample, counting repeated draws; ties share their mean rank."""
    distinct, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    counts = np.take(weights, order, axis=1)
    if len(distinct) < len(values):
        counts = np.add.reduceat(counts, np.searchsorted(place[order], np.arange(len(distinct))), axis=1)
    ranks = np.cumsum(counts, axis=1)
    ranks -= (counts - 1) / 2
    ranks -= (len(values) + 1) / 2
    square = np.einsum("su,su,su->s", counts, ranks, ranks)
    return np.take(ranks, place, axis=1), square


def _correlation(
    x: np.ndarray, x_square: np.ndarray, y: np.ndarray, y_square: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return Pearson's r per sample; 0 if either side is constant."""
    spread = x_square * y_square
    together = np.einsum("se,se,se->s", weights, x, y)
    return np.clip(np.where(spread > 0, together / np.sqrt(np.where(spread > 0, spread, 1)), 0.0), -1, 1)


CORRELATIONS: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "pearson": _center_values,
    "spearman": _center_ranks,
}
