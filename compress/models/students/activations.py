"""Inputs, outputs and weights of a model's modules on some text, as float64 arrays, and setting weights from arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

Array = np.ndarray[Any, np.dtype[np.float64]]
Point = tuple["nn.Module", str]  # a module, and its "in" or its "out"
Sample = Sequence[Mapping[str, Any]]

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def observe(model: Any, sample: Sample, points: Mapping[str, Point]) -> dict[str, Array]:
    """Return for each point its activations [real token, size] over the whole sample, in float64.

    Activations per text, such as a pooler's, are [text, size]. Dropout is off, and the model's mode is restored.
    """
    parts = list(observed_batches(model, sample, points))
    return {name: np.concatenate([part[name] for part in parts]) for name in points}


def observed_batches(model: Any, sample: Sample, points: Mapping[str, Point]) -> Iterator[dict[str, Array]]:
    """Like `observe`, one batch at a time."""
    import torch

    for batch, seen in zip(sample, padded_batches(model, sample, points), strict=True):
        tensors = seen.values()
        real = torch.as_tensor(batch["attention_mask"], device=next(iter(tensors)).device).bool()
        yield {
            name: (tensor[real] if tensor.dim() == 3 else tensor).double().cpu().numpy()
            for name, tensor in seen.items()
        }


def padded_batches(model: Any, sample: Sample, points: Mapping[str, Point]) -> Iterator[dict[str, Tensor]]:
    """Like `observed_batches`, with unchanged tensors: [batch, length, size], padding included."""
    import torch

    device = next(model.parameters()).device
    segments = getattr(model.config, "type_vocab_size", 0) > 1
    names = _INPUTS if segments else _INPUTS[:2]
    seen: dict[str, Any] = {}
    with ExitStack() as stack:
        stack.enter_context(evaluating(model))
        for name, (module, side) in points.items():
            handle = module.register_forward_hook(_recorder(seen, name, side))
            stack.callback(handle.remove)
        for batch in sample:
            inputs = {name: torch.as_tensor(batch[name], device=device) for name in names if name in batch}
            with torch.no_grad():
                model(**inputs)
            yield dict(seen)


def _recorder(seen: dict[str, Any], name: str, side: str) -> Any:
    def record(module: Any, inputs: Any, output: Any) -> None:
        seen[name] = inputs[0] if side == "in" else output

    return record


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Turn dropout off while open; the model's mode is restored."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


FEW_TOKENS = 6144  # enough for least squares on activations


def array(tensor: Any) -> Array:
    return tensor.detach().double().cpu().numpy()


def fill(module: Any, weight: Array, bias: Array | None = None) -> None:
    """Set the weight, and the bias if given, of a linear layer, a LayerNorm or a table."""
    import torch

    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(weight))
        if bias is not None:
            module.bias.copy_(torch.from_numpy(bias))


def thin_sample(sample: Sample, tokens: int = FEW_TOKENS) -> Sample:
    """Return every n-th text of `sample`, about `tokens` real tokens in total; all texts if there are fewer."""
    masks = [np.asarray(batch["attention_mask"]) for batch in sample]
    texts = sum(len(mask) for mask in masks)
    step = min(max(1, sum(int(mask.sum()) for mask in masks) // tokens), texts)
    chosen, before = [], 0
    for batch, mask in zip(sample, masks, strict=True):
        rows = np.flatnonzero((before + np.arange(len(mask))) % step == step // 2)
        before += len(mask)
        if len(rows):
            chosen.append({name: value[rows] for name, value in batch.items()})
    return chosen
