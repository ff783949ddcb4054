"""Small models with random weights, the units that each layer of their pruned copies keeps, and texts for them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

from compress.models.pruned.shape import prunable_families

FAMILIES = [family.name for family in prunable_families()]
HEADS, NEURONS = [[1, 3], [0, 1, 2]], [list(range(0, 64, 2)), list(range(16))]
# What is kept where whole parts are removed.
WITHOUT_PARTS: dict[str, tuple[list[list[int]], list[list[int]]]] = {
    "attention first": ([[], [0, 2, 3]], [list(range(16)), []]),
    "attention last": ([[1, 3], []], [[], list(range(0, 64, 2))]),
    "all but a head": ([[2], []], [[], []]),
}


def whole(family: str) -> Any:
    """Return a classifier with random weights: 2 layers of 4 heads and 64 neurons."""
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


def padded_batches(count: int = 12) -> list[dict[str, torch.Tensor]]:
    """Return batches of eight texts, one of them padded."""
    random = torch.Generator().manual_seed(3)
    batches = []
    for length in range(4, 4 + count):
        ids = torch.randint(5, 60, (8, length), generator=random)
        mask = torch.ones_like(ids)
        mask[0, 3:] = 0
        ids[mask == 0] = 1
        batches.append({"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)})
    return batches
