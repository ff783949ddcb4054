"""The learning rate and the size of the batch as pure functions of the step: nothing to save, nothing to get out of step."""

from __future__ import annotations

import math

import numpy as np

from ..spec.stages import Training

_SMALLEST = 1 / 8  # of a batch, where batches grow


def total_steps(settings: Training, batches_per_epoch: int) -> int:
    """Optimizer steps of the whole run."""
    steps = max(1, round(settings.epochs * batches_per_epoch))
    return min(steps, settings.max_steps) if settings.max_steps else steps


def learning_rate(settings: Training, step: int, total: int) -> float:
    """The rate used by optimizer step `step` (from 0): linear warm-up, then decay to 0 at `total`."""
    warmup = round(settings.warmup * total)
    if step < warmup:
        return settings.learning_rate * (step + 1) / (warmup + 1)
    if settings.schedule == "constant":
        return settings.learning_rate
    left = (total - step) / max(1, total - warmup)
    if settings.schedule == "cosine":
        left = 0.5 * (1 - math.cos(math.pi * left))
    return settings.learning_rate * left


def left_by_decay(settings: Training, steps: int, total: int) -> float:
    """What weight decay alone leaves of a weight after `steps` of `total` steps of AdamW, as a factor."""
    return math.prod(1 - learning_rate(settings, step, total) * settings.weight_decay for step in range(steps))


def grown(settings: Training, step: int, total: int, batch: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """The examples of `batch` that optimizer step `step` (from 0) trains on: all, once `batch_warmup` is over.

    Before, a part that grows linearly, spread evenly over the batch, which may be sorted by length. Batches stay where
    they are in the order: the examples that a smaller one leaves out come again with the next epoch. Of `groups`, the number of
    each example's, the first whole ones that fit, but one at least.
    """
    warmup = round((settings.batch_warmup or 0.0) * total)
    if step >= warmup:
        return batch
    count = math.ceil(len(batch) * (_SMALLEST + (1 - _SMALLEST) * step / warmup))
    if groups is not None:
        ends = np.append(np.flatnonzero(np.diff(groups)) + 1, len(batch))
        return batch[: max(ends[0], ends[ends <= count].max(initial=0))]
    return batch[np.arange(count) * len(batch) // count]
