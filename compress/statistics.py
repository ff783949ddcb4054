"""Is the difference between two models more than chance? Paired bootstrap intervals and McNemar's test.

Scores and differences are in points (0-100; correlations and Matthews × 100). Imports numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .errors import CompressError

Metric = Callable[[np.ndarray, np.ndarray], float]
Interval = tuple[float, float, float]

LEVEL = 0.95
# With fewer examples even unanimous changes come up by chance more often than once in twenty
# (2 · 2⁻⁵ = 0.0625), while the bootstrap would give an interval of no width.
FEWEST = 6
_CHUNK = 200_000  # weights held at a time: 1.6 MB, small enough to stay in the cache
_DECIMALS = 9  # rounding error of equal scores computed along two paths must not look like a difference


@dataclass(frozen=True)
class Headline:
    """A task's headline score: the mean of its metrics, in points.

    `metrics`: names as in a task file. `positive`: class id that `f1` counts as positive; -1 is the last.
    It can be called like any metric, `(logits [example, class], gold [example]) -> points`, and the
    bootstrap knows how to compute it for all resamples at once.
    """

    metrics: tuple[str, ...]
    positive: int = -1

    def __post_init__(self) -> None:
        unknown = [name for name in self.metrics if name not in {**CONFUSION_METRICS, **CORRELATIONS}]
        mixed = len({name in CORRELATIONS for name in self.metrics}) != 1
        if unknown or mixed:
            found = f"unknown metrics {unknown}" if unknown else f"metrics {list(self.metrics)}"
            raise CompressError(f"expected metrics of one kind, classification or regression; found {found}")

    def __call__(self, logits: np.ndarray, gold: np.ndarray) -> float:
        _check(gold, [logits])
        if self.correlation:
            columns = [np.ravel(logits).astype(np.float64), np.asarray(gold, dtype=np.float64)]
            return float(self._correlations(columns, np.ones((1, len(gold))))[0, 0])
        table = np.column_stack([np.asarray(gold, dtype=np.int64), logits.argmax(axis=1)])
        return float(self._of_counts(table, np.ones((1, len(gold))), logits.shape[1])[0, 0])

    @property
    def correlation(self) -> bool:
        return self.metrics[0] in CORRELATIONS

    def resample(
        self, outputs: Sequence[np.ndarray], gold: np.ndarray, samples: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Points [output, sample] on `samples` resamples of the examples, the same ones for every output."""
        if self.correlation:
            columns = [np.ravel(output).astype(np.float64) for output in outputs]
            columns.append(np.asarray(gold, dtype=np.float64))
            parts = [self._correlations(columns, weights) for weights in _weights(len(gold), samples, rng)]
            return np.concatenate(parts, axis=1)
        table = np.column_stack([gold.astype(np.int64), *(output.argmax(axis=1) for output in outputs)])
        # Examples with the same gold class and the same predictions are interchangeable: drawing how often
        # each such pattern occurs is the bootstrap over examples, with a handful of numbers per resample.
        patterns, sizes = np.unique(table, axis=0, return_counts=True)
        counts = rng.multinomial(len(gold), sizes / len(gold), size=samples)
        return self._of_counts(patterns, counts, outputs[0].shape[1])

    def _of_counts(self, patterns: np.ndarray, counts: np.ndarray, classes: int) -> np.ndarray:
        """Points [output, sample]. `patterns`: gold and predicted classes [pattern, 1 + output]; `counts` [sample, pattern]."""
        positive = self.positive % classes
        step = max(1, _CHUNK // classes**2)
        points = np.zeros((patterns.shape[1] - 1, len(counts)))
        for output in range(len(points)):
            cells = patterns[:, 0] * classes + patterns[:, 1 + output]
            for start in range(0, len(counts), step):
                confusion = _confusion(counts[start : start + step], cells, classes)
                scores = [CONFUSION_METRICS[name](confusion, positive) for name in self.metrics]
                points[output, start : start + step] = 100 * np.mean(scores, axis=0)
        return points

    def _correlations(self, columns: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Points [output, sample]; the last column is the gold score; `weights` [sample, example]."""
        scores = []
        for name in self.metrics:
            prepared = [CORRELATIONS[name](column, weights) for column in columns]
            gold, gold_square = prepared[-1]
            outputs = [_correlation(values, square, gold, gold_square, weights) for values, square in prepared[:-1]]
            scores.append(outputs)
        return 100 * np.mean(scores, axis=0)


def paired_bootstrap(
    metric: Metric, base: np.ndarray, other: np.ndarray, gold: np.ndarray, *, samples: int = 2000, seed: int = 0
) -> Interval:
    """(points, low, high): `metric(other) - metric(base)` with its 95% interval over examples.

    The percentile bootstrap: both models are scored on the same resampled examples (Efron & Tibshirani
    1993, ch. 13). `metric(logits [example, class], gold [example]) -> points`; a `Headline` takes a second
    for 10,000 examples, any other function is called twice per resample. Spearman's ρ is re-ranked within
    every resample. Below six examples the interval always holds 0.

    Raises `CompressError` when there are no examples or the lengths differ.
    """
    return paired_bootstrap_seeds(metric, [(base, other)], gold, samples=samples, seed=seed)


def paired_bootstrap_seeds(
    metric: Metric,
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    gold: np.ndarray,
    *,
    samples: int = 2000,
    seed: int = 0,
) -> Interval:
    """The mean difference over training seeds, one (base, other) pair each, on the same examples.

    A resample draws examples (the same ones for all seeds) and seeds. Of S seeds it draws S - 1: drawing S
    would make their variance too small by (S - 1) / S, which matters for the three that one can afford.
    """
    gold = np.asarray(gold)
    pairs = [(np.asarray(base), np.asarray(other)) for base, other in pairs]
    _check(gold, [output for pair in pairs for output in pair])
    if all(np.array_equal(base, other) for base, other in pairs):
        return 0.0, 0.0, 0.0
    rng = np.random.default_rng(seed)
    points = float(np.mean([metric(other, gold) - metric(base, gold) for base, other in pairs]))
    differences = _differences(metric, pairs, gold, samples, rng)
    if len(pairs) > 1:
        drawn = rng.integers(len(pairs), size=(len(pairs) - 1, samples))
        differences = np.take_along_axis(differences, drawn, axis=0)
    low, high = np.quantile(differences.mean(axis=0), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    if len(gold) < FEWEST:
        low, high = min(low, 0.0), max(high, 0.0)
    return _rounded(points), _rounded(low), _rounded(high)


def mcnemar(base_correct: np.ndarray, other_correct: np.ndarray) -> float:
    """Exact two-sided p of McNemar's test: are the examples that only one model gets right split evenly?

    The binomial test on the discordant pairs, in whole numbers; 1.0 where there are none.
    """
    base, other = np.asarray(base_correct, dtype=bool), np.asarray(other_correct, dtype=bool)
    _check(base, [other])
    only_base, only_other = int((base & ~other).sum()), int((other & ~base).sum())
    discordant = only_base + only_other
    term = total = 1
    for successes in range(1, min(only_base, only_other) + 1):
        term = term * (discordant - successes + 1) // successes
        total += term
    return min(1.0, 2 * total / 2**discordant)


def _differences(
    metric: Metric,
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    gold: np.ndarray,
    samples: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Points [pair, sample]: other minus base on the same resampled examples."""
    if isinstance(metric, Headline):
        points = metric.resample([output for pair in pairs for output in pair], gold, samples, rng)
        return points[1::2] - points[::2]
    differences = np.empty((len(pairs), samples))
    for sample in range(samples):
        chosen = rng.integers(len(gold), size=len(gold))
        for number, (base, other) in enumerate(pairs):
            differences[number, sample] = metric(other[chosen], gold[chosen]) - metric(base[chosen], gold[chosen])
    return differences


def _check(gold: np.ndarray, outputs: Sequence[np.ndarray]) -> None:
    lengths = sorted({len(output) for output in outputs})
    if not len(gold) or lengths != [len(gold)]:
        raise CompressError(
            f"expected predictions for each of the {len(gold):,} examples (at least 1), found {lengths}"
        )


def _rounded(value: float) -> float:
    return round(float(value), _DECIMALS) + 0.0  # never -0.0


def _weights(examples: int, samples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """How often each example is drawn, [sample, example], a few samples at a time."""
    step = max(1, _CHUNK // examples)
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        drawn = rng.integers(examples, size=(rows, examples))
        drawn += np.arange(rows)[:, None] * examples
        counts = np.bincount(drawn.ravel(), minlength=rows * examples)
        yield counts.reshape(rows, examples).astype(np.float64)


def _confusion(counts: np.ndarray, cells: np.ndarray, classes: int) -> np.ndarray:
    """Counts [sample, gold class, predicted class] from `counts` [sample, pattern] and the cell of each pattern."""
    if len(cells) * classes**2 <= 10_000:  # few classes: one small matrix product
        flat = counts.astype(np.float64) @ np.eye(classes**2)[cells]
    else:
        flat = np.stack([np.bincount(cells, weights=row, minlength=classes**2) for row in counts])
    return flat.reshape(-1, classes, classes)


def _accuracy(confusion: np.ndarray, positive: int) -> np.ndarray:
    return np.trace(confusion, axis1=1, axis2=2) / confusion.sum(axis=(1, 2))


def _f1_per_class(confusion: np.ndarray) -> np.ndarray:
    """[sample, class]; 0 where a class is neither present nor predicted."""
    occurrences = confusion.sum(axis=1) + confusion.sum(axis=2)
    return 2 * np.diagonal(confusion, axis1=1, axis2=2) / np.maximum(occurrences, 1)


def _f1(confusion: np.ndarray, positive: int) -> np.ndarray:
    return _f1_per_class(confusion)[:, positive]


def _f1_macro(confusion: np.ndarray, positive: int) -> np.ndarray:
    seen = (confusion.sum(axis=1) + confusion.sum(axis=2)) > 0
    return (_f1_per_class(confusion) * seen).sum(axis=1) / seen.sum(axis=1)


def _matthews(confusion: np.ndarray, positive: int) -> np.ndarray:
    """Gorodkin's R_K (2004) for any number of classes; 0 when either side is constant."""
    total, gold, predicted = confusion.sum(axis=(1, 2)), confusion.sum(axis=2), confusion.sum(axis=1)
    spread = (total**2 - (gold**2).sum(axis=1)) * (total**2 - (predicted**2).sum(axis=1))
    agreement = np.trace(confusion, axis1=1, axis2=2) * total - (gold * predicted).sum(axis=1)
    return np.where(spread > 0, agreement / np.sqrt(np.where(spread > 0, spread, 1)), 0.0)


def _centred(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values minus their weighted mean [sample, example], and their weighted square [sample]."""
    values = values - values.mean()  # first as a whole: no cancellation where the mean is large
    scale = np.abs(values).max() or 1.0
    values = values / scale
    centred = values - (weights @ values / len(values))[:, None]
    square = np.einsum("se,se,se->s", weights, centred, centred)
    # A resample that drew one value only has no spread; what is left is rounding error.
    return centred, np.where(square > 1e-24 * len(values), square, 0.0)


def _ranked(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for mean ranks within each resample, drawn copies counted, ties sharing their mean rank."""
    distinct, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    firsts = np.searchsorted(place[order], np.arange(len(distinct)))
    counts = np.add.reduceat(weights[:, order], firsts, axis=1)
    ranks = np.cumsum(counts, axis=1) - (counts - 1) / 2 - (len(values) + 1) / 2
    square = np.einsum("su,su,su->s", counts, ranks, ranks)
    return np.take(ranks, place, axis=1), square


def _correlation(
    x: np.ndarray, x_square: np.ndarray, y: np.ndarray, y_square: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Pearson's r per sample; 0 when either side is constant."""
    spread = x_square * y_square
    together = np.einsum("se,se,se->s", weights, x, y)
    return np.clip(np.where(spread > 0, together / np.sqrt(np.where(spread > 0, spread, 1)), 0.0), -1, 1)


CONFUSION_METRICS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "f1_macro": _f1_macro,
    "matthews": _matthews,
}
CORRELATIONS: dict[str, Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "pearson": _centred,
    "spearman": _ranked,
}
