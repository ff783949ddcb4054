"""Small models with random weights, and what each layer of their pruned copies keeps."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from compress.models.pruned_shape import prunable

FAMILIES = [family.name for family in prunable()]
HEADS, NEURONS = [[1, 3], [0, 1, 2]], [list(range(0, 64, 2)), list(range(16))]


def whole(family: str) -> Any:
    """A classifier of 2 layers of 4 heads and 64 neurons, every weight random."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    if family == "distilbert":
        sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    config = AutoConfig.for_model(family, vocab_size=64, max_position_embeddings=32, num_labels=3, **sizes)
    torch.manual_seed(5)
    model: Any = AutoModelForSequenceClassification.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()
