"""Tiny sentence encoders of every family, with random weights."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from family_teachers import tagger_of
from plain_teachers import plain_classifier

from compress.models.heads import HEADS, model_from


@cache
def encoder(family: str, pooling: str = "mean") -> Any:
    """Return an encoder whose config names its pooling; cached, so do not modify it."""
    torch.manual_seed(5)
    model = plain_classifier(family, tags=True) if family in ("deberta-v2", "xlnet") else tagger_of(family)
    config = type(model.config).from_dict(model.config.to_dict() | {"sentence_pooling": pooling})
    embedder = model_from(HEADS["embedding"], config).eval()
    with torch.no_grad():
        for parameter in embedder.parameters():  # larger than transformers' initial weights, so that every part matters
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return embedder
