"""The inputs that every candidate gets: the same seeded ids, cut into calls. Needs only numpy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

VOCABULARY = 30522  # size of every model's vocabulary
RAGGED = "ragged"
WHOLE = 0  # the way with all sequences in one call, padded to the longest

# cell -> the ways to cut it: sequences in a call, or for `ragged` the tokens of a call, padding included
CELLS: dict[str, tuple[int, ...]] = {
    "1x32": (1,),
    "1x128": (1,),
    "32x128": (4, 8, 32),
    RAGGED: (256, 512, 1024, WHOLE),
}


@dataclass(frozen=True)
class Batch:
    """One call: `ids` and `mask`, int64 [sequence, length]; the mask is 1 for tokens and 0 for the padding at the end."""

    ids: np.ndarray
    mask: np.ndarray


def ragged_lengths(count: int = 128, mean: float = 26.0, longest: int = 64) -> list[int]:
    """Return lengths in tokens like those of short texts: most near the mean, a tail cut at `longest`; seeded."""
    drawn = np.random.default_rng(4).gamma(4.0, mean / 4.0, count)
    return [int(length) for length in np.clip(np.rint(drawn), 4, longest)]


def groups(lengths: list[int], tokens: int) -> list[list[int]]:
    """Return indices of `lengths` in calls of at most `tokens`, padding included, longest first; WHOLE: one call in the given order. A
    sequence longer than `tokens` is a call of its own."""
    if tokens == WHOLE:
        return [list(range(len(lengths)))]
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if not batches or (len(batches[-1]) + 1) * lengths[batches[-1][0]] > tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


def padded(lengths: list[int], seed: int = 0) -> Batch:
    """Return random ids of these lengths, drawn from the whole vocabulary, padded with 0 to the longest."""
    mask = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
    ids = np.random.default_rng(seed).integers(1, VOCABULARY, mask.shape)
    return Batch(ids * mask, mask)


def calls(cell: str, way: int) -> list[Batch]:
    """Return the calls that answer `cell` once, cut in the `way`."""
    if cell == RAGGED:
        lengths = ragged_lengths()
        return [padded([lengths[index] for index in group], seed) for seed, group in enumerate(groups(lengths, way))]
    count, length = (int(number) for number in cell.split("x"))
    return [padded([length] * way, seed) for seed in range(count // way)]


def checked() -> Batch:
    """Return the padded batch on which candidates must agree with torch."""
    return padded(ragged_lengths(count=32), seed=1)


def clock(threads: int) -> str:
    """Return which time counts: a busy machine disturbs CPU time least, but with several threads CPU time is their sum."""
    return "cpu" if threads == 1 else "wall"


def way_name(cell: str, way: int) -> str:
    """Return the name of the `way` for reports."""
    if cell != RAGGED:
        return f"calls of {way}"
    return "one padded call" if way == WHOLE else f"sorted, {way} tokens"
