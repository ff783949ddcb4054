"""Weights of modules as float64 arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from .activations import Array, Sample

FEW_TOKENS = 6144  # enough for least squares on activations


def array(tensor: Any) -> Array:
    return tensor.detach().double().cpu().numpy()


def fill(module: Any, weight: Array, bias: Array | None = None) -> None:
    """Set the weight, and the bias where one is given, of a linear layer, a LayerNorm or a table."""
    import torch

    with torch.no_grad():
        module.weight.copy_(torch.from_numpy(weight))
        if bias is not None:
            module.bias.copy_(torch.from_numpy(bias))


def thinned(sample: Sample, tokens: int = FEW_TOKENS) -> Sample:
    """Batches evenly out of `sample`, with about `tokens` real tokens; all of them where there are fewer."""
    sizes = [int(np.asarray(batch["attention_mask"]).sum()) for batch in sample]
    step = max(1, sum(sizes) // tokens)
    chosen, total = [], 0
    for number in range(step // 2, len(sample), step):
        if total < tokens:
            chosen.append(sample[number])
            total += sizes[number]
    return chosen
