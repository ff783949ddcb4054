"""How a model does on what it was not trained on: outputs and scores of the tuning split, and the loss on held-out text."""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from ...corpus import MaskedBatches
from ...errors import CompressError
from ...models.features.predict import collected_logits, to_tensors
from ...models.masked_lm import masked_text_loss
from ...tasks import TASK_KINDS, Encoded, TrainingData, headline, headline_of, score
from .info import HeldOut

_LARGEST_EXPONENT = 700.0  # e to a larger one is no double


def tuning_score(data: TrainingData, tuning: Encoded, pad: int) -> Callable[[nn.Module], float]:
    """Return a function that scores a model on the tuning split, in headline points; with the best threshold, if answers depend on one."""

    def evaluate(model: nn.Module) -> float:
        return headline(score(data.spec, data.labels, tuning_outputs(data, tuning, pad, model), tuning.labels))

    return evaluate


def tuning_outputs(data: TrainingData, tuning: Encoded, pad: int, model: nn.Module) -> np.ndarray:
    """Return the outputs of the tuning split, in its order, in the form that scores take; with the best threshold, if answers depend on
    one."""
    logits = collected_logits(model, tuning, pad)
    return tuning.decided(logits, best_threshold(data, logits, tuning.labels))


def best_threshold(data: TrainingData, logits: np.ndarray, gold: np.ndarray) -> float | np.ndarray:
    """Return the best threshold for collected outputs on the tuning split: for logits [label], or the margin of no answer over a span; 0 if
    answers depend on none."""
    fit = TASK_KINDS[data.spec.kind].fit_threshold
    return 0.0 if fit is None else fit(logits, gold, headline_of(data.spec, data.labels))


def held_out_loss(model: nn.Module, data: MaskedBatches, *, size: int) -> HeldOut:
    """Return the loss on text that was not trained on: `loss`, in nats a masked token, and `perplexity`; `sequences` and `tokens` counted.

    `size`: sequences of a forward, halved if memory runs out. Raises `CompressError` if memory does not suffice for one.
    """
    summed, tokens, start = 0.0, 0, 0
    while start < data.text.count:
        part = np.arange(start, min(start + size, data.text.count))
        try:
            loss, masked = _loss_of(model, data, part)
        except torch.OutOfMemoryError:
            if size == 1:
                raise CompressError(
                    "out of memory with one held-out sequence at a time; train on a machine with more"
                ) from None
            size //= 2
            continue
        summed, tokens, start = summed + loss * masked, tokens + masked, start + len(part)
    loss = summed / max(1, tokens)
    return {
        "loss": loss,
        "perplexity": math.exp(min(loss, _LARGEST_EXPONENT)),
        "sequences": data.text.count,
        "tokens": tokens,
    }


@torch.inference_mode()
def _loss_of(model: nn.Module, data: MaskedBatches, sequences: np.ndarray) -> tuple[float, int]:
    """Return (mean loss of the masked tokens, how many)."""
    batch = to_tensors(data.collate(sequences), next(model.parameters()).device)
    return float(masked_text_loss(model, batch)), len(batch["masked"])
