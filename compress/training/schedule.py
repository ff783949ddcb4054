"""The learning rate as a pure function of the step, so that there is no state to save."""

from __future__ import annotations

import math

from ..spec.stages import Training


def total_steps(settings: Training, batches_per_epoch: int) -> int:
    """Return the optimizer steps of the whole run."""
    steps = max(1, round(settings.epochs * batches_per_epoch))
    return min(steps, settings.max_steps) if settings.max_steps else steps


def learning_rate(settings: Training, step: int, total: int) -> float:
    """Return the rate of optimizer step `step` (from 0): linear warm-up, then the schedule, which for all but `constant` decays to 0 at
    `total`."""
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
    """Return the factor by which weight decay alone scales a weight in the first `steps` of `total` AdamW steps."""
    return math.prod(1 - learning_rate(settings, step, total) * settings.weight_decay for step in range(steps))
