"""Logits of a torch model over a whole split, for model selection and cached teacher targets."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from ...losses.spans import moved_logits
from ...runtime.passages import THRESHOLD
from ...tasks import Encoded, EncodedParts, EncodedSpans, collate, sorted_chunks, span_tables
from .named import Batch, compute_features


def to_tensors(arrays: dict[str, np.ndarray], device: torch.device) -> Batch:
    """Return the arrays as tensors on `device`.

    To a GPU they are copied from pinned memory, as any other copy would wait for all queued work. There, a batch without padding also has
    `unpadded`, the mask again, so that nobody needs to query the GPU for padding.
    """
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    if device.type != "cuda":
        return {name: tensor.to(device) for name, tensor in tensors.items()}
    batch = {name: tensor.pin_memory().to(device, non_blocking=True) for name, tensor in tensors.items()}
    if "attention_mask" in arrays and arrays["attention_mask"].all():
        batch["unpadded"] = batch["attention_mask"]
    return batch


def predict_logits(
    model: Any, encoded: Encoded, pad_id: int, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> np.ndarray:
    """Return float32 outputs [example, output] in the order of `encoded`, made from logits as `compress.evaluate` does; the model's mode is
    restored. `on_progress(done, total)` receives numbers of examples."""
    return encoded.decided(collected_logits(model, encoded, pad_id, on_progress), getattr(model.config, THRESHOLD, 0.0))


@torch.inference_mode()
def collected_logits(
    model: nn.Module, encoded: Encoded, pad_id: int, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> np.ndarray:
    """Like `predict_logits`, but before any threshold is applied."""
    training = model.training
    model.eval()
    logits = encoded.collected(
        (rows, outputs.cpu().numpy()) for rows, _, outputs in _forwards(model, encoded, pad_id, on_progress)
    )
    model.train(training)
    return logits


@torch.inference_mode()
def put_token_logits(
    table: np.ndarray,
    model: nn.Module,
    windows: EncodedSpans,
    pad_id: int,
    *,
    parts: EncodedParts | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Fill `table`, float32 [token, 2] of all windows in sequence, with a reader's logits; the model's mode is restored. `parts`: the
    windows in the reader's own tokens, if it has another tokenizer; its logits are then moved to ours (`moved_logits`)."""
    training = model.training
    model.eval()
    for rows, batch, outputs in _forwards(model, windows if parts is None else parts, pad_id, on_progress):
        if parts is not None:
            outputs = moved_logits(outputs, batch["places"], int(windows.lengths[rows].max()))
        span_tables.put_outputs(table, windows, rows, outputs.cpu().numpy())
    model.train(training)


def _forwards(
    model: nn.Module, encoded: Encoded, pad_id: int, on_progress: Callable[[int, int], None]
) -> Iterator[tuple[np.ndarray, Batch, torch.Tensor]]:
    """Yield for chunks that cover all rows: the rows, their batch and float32 logits."""
    device, done = next(model.parameters()).device, 0
    for rows in sorted_chunks(encoded.lengths):
        batch = to_tensors(collate(encoded, rows, pad_id), device)
        yield rows, batch, compute_features(model, batch, ("logits",))["logits"].float()
        done += len(rows)
        on_progress(done, len(encoded))
