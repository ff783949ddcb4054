"""A reader's outputs at every token of some windows, all windows in sequence: float32 [token, 2], divided by `EncodedSpans.starts`.

A table has logits of start and end, or logs of their calibrated probabilities over the compared tokens of a window
(`EncodedSpans.compares`); values at other tokens are never read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...files.arrays import zeros_file
from ...losses.spans import NOTHING
from ..ensembles import divide_by_temperature, likeliest_temperature
from .encoded import ENCODE_AT_ONCE
from .spans import EncodedSpans
from .task_batches import sorted_chunks


def create_table(path: Path, windows: EncodedSpans) -> np.memmap:
    """Return a table of zeros in the file `path`, a .npy, to be filled and flushed."""
    return zeros_file(path, (int(windows.starts[-1]), 2))


def put_outputs(table: np.ndarray, windows: EncodedSpans, rows: np.ndarray, outputs: np.ndarray) -> None:
    """Write the padded outputs [row, length, 2] of these windows into `table`."""
    for row, row_outputs in zip(rows.tolist(), outputs, strict=True):
        table[windows.starts[row] : windows.starts[row + 1]] = row_outputs[: windows.lengths[row]]


def padded_outputs(table: np.ndarray, windows: EncodedSpans, rows: np.ndarray, length: int) -> np.ndarray:
    """Return float32 [row, length, 2] of these windows, 0 at padding."""
    outputs = np.zeros((len(rows), length, 2), np.float32)
    for index, row in enumerate(rows.tolist()):
        outputs[index, : windows.lengths[row]] = table[windows.starts[row] : windows.starts[row + 1]]
    return outputs


def collect_outputs(table: np.ndarray, windows: EncodedSpans) -> np.ndarray:
    """Return `EncodedSpans.collected` of the outputs in `table`."""
    chunks = sorted_chunks(windows.lengths)
    return windows.collected(
        (rows, padded_outputs(table, windows, rows, int(windows.lengths[rows].max()))) for rows in chunks
    )


def fit_span_temperature(table: np.ndarray, windows: EncodedSpans) -> float:
    """Return the temperature for logits [token, 2], like `fit_temperature`: the T with the least negative log-likelihood of the windows'
    target starts and ends over the compared tokens.

    Targets to which no probability was moved (`moved_logits`) are ignored, as no T makes them likelier.
    """
    kept, begins = _compared_tokens(windows, 0, len(windows))
    logits = np.asarray(table[kept], dtype=np.float64)
    gold = np.asarray(table[windows.starts[:-1, None] + windows.places, [0, 1]], dtype=np.float64)
    known = gold > NOTHING
    if (gold >= np.maximum.reduceat(logits, begins))[known].all():
        return 1.0

    def slope(inverse: float) -> float:
        """Return the mean of z_label − E[z]."""
        probabilities = np.exp(_log_probabilities(logits * inverse, begins))
        return float((gold - np.add.reduceat(probabilities * logits, begins))[known].mean())

    return likeliest_temperature(slope)


def calibrate(table: np.ndarray, windows: EncodedSpans, temperature: float) -> None:
    """Replace logits, in place, by log softmax(logits / temperature) over the compared tokens of each window, and 0 at others."""
    for first in range(0, len(windows), ENCODE_AT_ONCE):
        end = min(first + ENCODE_AT_ONCE, len(windows))
        kept, begins = _compared_tokens(windows, first, end)
        log_probabilities = _log_probabilities(divide_by_temperature(table[kept], temperature), begins)
        table[windows.starts[first] : windows.starts[end]] = 0
        table[kept] = log_probabilities


def _compared_tokens(windows: EncodedSpans, first: int, end: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for the windows from `first` to `end`, int64: the compared tokens, and where each window's start among these. Every window
    has one."""
    starts, lengths = windows.starts[first:end], windows.lengths[first:end]
    tokens = np.arange(windows.starts[first], windows.starts[end])
    compared = windows.compares(np.repeat(np.arange(first, end), lengths), tokens - np.repeat(starts, lengths))
    counts = np.add.reduceat(compared, starts - windows.starts[first], dtype=np.int64)
    return tokens[compared], np.cumsum(counts) - counts


def _log_probabilities(logits: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Return [token, 2], log softmax over the tokens of each window, whose first tokens are `begins`."""
    sizes = np.diff(begins, append=len(logits))
    shifted = logits - np.repeat(np.maximum.reduceat(logits, begins), sizes, axis=0)
    return shifted - np.repeat(np.log(np.add.reduceat(np.exp(shifted), begins)), sizes, axis=0)
