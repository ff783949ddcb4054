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
    """Every so-manieth text of `sample`, about `tokens` real tokens in all; all of them where there are fewer."""
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
