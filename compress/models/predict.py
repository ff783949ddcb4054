"""Logits of a torch model over a whole split, for selection and for cached teacher targets."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from ..runtime.passages import THRESHOLD
from ..tasks import Encoded, collate, sorted_chunks
from .features import Batch, compute_features


def to_tensors(arrays: dict[str, np.ndarray], device: torch.device) -> Batch:
    """On `device`. To a GPU from memory that stays in place: a copy from any other waits for all that is queued there.

    There a batch without padding has `unpadded`, its mask once more: nobody needs to ask the GPU whether it has some.
    """
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if device.type != "cuda":
        return {name: tensor.to(device) for name, tensor in tensors.items()}
    batch = {name: tensor.pin_memory().to(device, non_blocking=True) for name, tensor in tensors.items()}
    if "attention_mask" in arrays and arrays["attention_mask"].all():
        batch["unpadded"] = batch["attention_mask"]
    return batch


def predict_logits(model: Any, encoded: Encoded, pad_id: int) -> np.ndarray:
    """float32 outputs [example, output] in the order of `encoded`, made of logits as `compress.evaluate` makes them; the model's mode is
    restored afterwards."""
    return encoded.decided(collected_logits(model, encoded, pad_id), getattr(model.config, THRESHOLD, 0.0))


@torch.inference_mode()
def collected_logits(model: nn.Module, encoded: Encoded, pad_id: int) -> np.ndarray:
    """As `predict_logits`, before any threshold decides."""
    training = model.training
    model.eval()
    device = next(model.parameters()).device

    def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for chunk in sorted_chunks(encoded.lengths):
            batch = to_tensors(collate(encoded, chunk, pad_id), device)
            yield chunk, compute_features(model, batch, ("logits",))["logits"].float().cpu().numpy()

    logits = encoded.collected(parts())
    model.train(training)
    return logits
