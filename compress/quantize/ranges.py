"""The range of an activation from its observed values: one function per method, on a histogram and the extremes.

A percentile needs only the ends of the histogram, which are known after one pass over the texts: `Seen.add_ends`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto

from .sampling import Feed, Sample

BINS = 1 << 16


@dataclass(frozen=True)
class Range:
    """The interval that an activation's 256 quantized values span. Zero is one of them."""

    low: float
    high: float

    def parameters(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the float32 scale and the uint8 zero point."""
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        scale = np.float32((high - low) / 255)
        scale = scale if scale >= np.finfo(np.float32).tiny else np.float32(1)
        return np.array(scale, np.float32), np.array(np.clip(np.rint(-low / scale), 0, 255), np.uint8)

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Return `values` quantized and dequantized, float32."""
        scale, zero = self.parameters()
        quantized = np.clip(np.rint(values / scale) + np.float32(zero), 0, 255)
        return ((quantized - np.float32(zero)) * scale).astype(np.float32)


@dataclass
class Seen:
    """Statistics of one tensor: its extremes, and the counts of `BINS` equal bins between them. `ends`: the smallest and the
    largest of its `size` values."""

    limits: tuple[float, float] = (math.inf, -math.inf)
    counts: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))
    size: int = 0
    ends: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))

    def add_extremes(self, values: np.ndarray) -> None:
        low, high = self.limits
        self.limits = min(low, float(values.min())), max(high, float(values.max()))

    def add_counts(self, values: np.ndarray) -> None:
        self.counts += _histogram(values, self.limits)[0]

    def add_ends(self, values: np.ndarray, count: int) -> None:
        """Keep in `ends` the `count` smallest and the `count` largest values so far; all, if there are no more."""
        values = values.reshape(-1)
        self.size += values.size
        if self.ends.size == 2 * count:
            low, high = self.ends[count - 1], self.ends[count]  # the innermost of both ends
            values = values[(values < low) | (values > high)]
        ends = np.concatenate([self.ends, values])
        if ends.size >= 2 * count:
            ends = np.partition(ends, (count - 1, ends.size - count))
            ends = np.concatenate([ends[:count], ends[-count:]])
        self.ends = ends

    def count_ends(self, count: int) -> None:
        """Compute the counts from the `ends` of `add_ends`: exact except between the innermost of both ends, where all other
        values are counted in one bin."""
        self.counts = _histogram(self.ends, self.limits)[0]
        if self.size > self.ends.size:
            inner = _histogram(self.ends[count - 1 : count], self.limits)[0]
            self.counts = self.counts + inner * (self.size - self.ends.size)


def _histogram(values: np.ndarray, limits: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    try:
        return np.histogram(values, BINS, limits)
    except ValueError:  # float32 has too few numbers between values that hardly differ for their size
        return np.histogram(values.astype(np.float64), BINS, limits)


def minmax(seen: Seen, percentile: float) -> Range:
    """Return the extremes."""
    return Range(*seen.limits)


def percentile_range(seen: Seen, percentile: float) -> Range:
    """Return the range of `percentile` of the values, with equal shares cut off below and above; exact to a bin."""
    edges = np.linspace(*seen.limits, BINS + 1)
    share = np.concatenate([[0.0], np.cumsum(seen.counts) / seen.counts.sum()])
    off = (100 - percentile) / 200
    first = int(np.searchsorted(share, off, side="right")) - 1
    last = int(np.searchsorted(share, 1 - off, side="left"))
    return Range(float(edges[max(first, 0)]), float(edges[min(last, BINS)]))


RANGES: dict[str, Callable[[Seen, float], Range]] = {
    "percentile": percentile_range,
    "minmax": minmax,
}


def calibrate(
    model: ModelProto, tensors: Sequence[str], feeds: Sequence[Feed], *, method: str = "percentile", percentile: float
) -> dict[str, Range]:
    """Map each tensor to its range by a method of `RANGES`; `percentile` is for the method of that name.

    `feeds`: the model's inputs by name, padded batches; padding is ignored. Memory: one batch, and for each tensor a
    histogram of 65,536 bins and the values beyond the percentile.
    """
    seen = {name: Seen() for name in tensors}
    kept: dict[str, int] = {}  # smallest values, and largest, to keep: those beyond the percentile and a few more
    tokens, beyond = sum(feed["input_ids"].size for feed in feeds), (100 - percentile) / 200
    with Sample(model, tensors, feeds) as sample:
        for batch in sample.batches():
            for name, values in batch.items():
                seen[name].add_extremes(values)
                if method == "percentile":
                    count = kept.setdefault(name, int(beyond * tokens * values.shape[-1]) + 2)
                    seen[name].add_ends(values, count)
        enough = {name for name, count in kept.items() if count > beyond * seen[name].size + 1}
        rest = [name for name in kept if name not in enough]
        for batch in sample.batches() if rest else ():
            for name in rest:
                seen[name].add_counts(batch[name])
    for name in enough:
        seen[name].count_ends(kept[name])
    return {name: RANGES[method](statistics, percentile) for name, statistics in seen.items()}
