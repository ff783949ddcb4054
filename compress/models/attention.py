"""What the attention of a running model computes inside, taken out without touching the model's code."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

KINDS = ("scores", "queries", "keys", "values")
Place = tuple[str, int]  # a kind, and a layer counted from 0

_NAME = "compress_capture"


@dataclass
class _Capture:
    """One forward: layers are told by their order, as a layer whose weights are shared is called several times."""

    wanted: frozenset[Place]
    found: dict[Place, Tensor] = field(default_factory=dict)
    layer: int = 0


_current: ContextVar[_Capture] = ContextVar("capture")


@contextmanager
def captured(model: Any, wanted: frozenset[Place]) -> Iterator[dict[Place, Tensor]]:
    """While open, one forward of `model` leaves the `wanted` tensors in the mapping that is given.

    Scores are [batch, heads, query, key], before softmax and without the mask; queries, keys and values are
    [batch, heads, length, head size]. Every layer still goes through torch's own attention kernel, dropout included: only
    the scores that are wanted are multiplied out beside it. When nothing is wanted the model is left alone.
    """
    capture = _Capture(wanted)
    if not wanted:
        yield capture.found
        return
    before = model.config._attn_implementation
    token = _current.set(capture)
    model.config._attn_implementation = _NAME
    try:
        yield capture.found
    finally:
        model.config._attn_implementation = before
        _current.reset(token)


def attention_scores(query: Tensor, key: Tensor, scaling: float | None) -> Tensor:
    """Q Kᵀ · scaling, which is 1/√(head size) unless it is given: [batch, heads, query, key]."""
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return torch.matmul(query * scale, key.transpose(-1, -2))


def _attention(
    module: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    capture = _current.get()
    layer, capture.layer = capture.layer, capture.layer + 1
    for kind, tensor in zip(("queries", "keys", "values"), (query, key, value), strict=True):
        if (kind, layer) in capture.wanted:
            capture.found[kind, layer] = tensor
    if ("scores", layer) in capture.wanted:
        capture.found["scores", layer] = attention_scores(query, key, options.get("scaling"))
    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)


AttentionInterface.register(_NAME, _attention)
AttentionMaskInterface.register(_NAME, sdpa_mask)
