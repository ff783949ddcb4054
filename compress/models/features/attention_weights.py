"""Attention weights of each head of a model for one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from ...losses.features import attention
from .attention import headless_layers
from .named import compute_features


@torch.inference_mode()
def attention_weights(
    model: Any, ids: Sequence[int], segments: Sequence[int]
) -> list[Float[np.ndarray, "head query key"] | None]:
    """Return for each layer of `model`, in evaluation mode, the softmax of each head's scores (rows sum to 1), or None for a pruned layer
    without heads. Raises `CompressError` if the family's attention cannot be read."""
    layers = range(model.config.num_hidden_layers)
    names = {layer: attention("weights", layer) for layer in layers if layer not in headless_layers(model.config)}
    batch = {"input_ids": torch.tensor([ids]), "token_type_ids": torch.tensor([segments])}
    batch["attention_mask"] = torch.ones_like(batch["input_ids"])
    features = compute_features(model, batch, names.values())
    return [features[names[layer]][0].float().numpy() if layer in names else None for layer in layers]
