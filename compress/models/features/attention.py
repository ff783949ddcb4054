"""Read the attention of a running model without changing its code, and train it faster on a CPU."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from ...losses.features import FeatureKey
from ..pruned.shape import PrunedShape
from .dropout import dropout
from .own_attention import redirected_attention

_NAME = "compress_capture"
_SHORT = 128  # tokens up to which plain matmuls are faster in bf16


@dataclass
class _Capture:
    """State of one captured forward. Layers are identified by call order, because a layer with shared weights is called several times.
    `layers`: numbers of the layers that have heads, ascending."""

    wanted: frozenset[FeatureKey]
    layers: Iterator[int]
    tensors: dict[FeatureKey, Tensor] = field(default_factory=dict)


_current: ContextVar[_Capture] = ContextVar("capture")


@contextmanager
def capture_tensors(model: Any, wanted: frozenset[FeatureKey]) -> Iterator[dict[FeatureKey, Tensor]]:
    """Record the `wanted` tensors of one forward of `model` in the yielded mapping.

    Scores are [batch, heads, query, key], before softmax and without the mask; they include the relative position bias of families that
    have one. Weights, of the same shape, are what attention multiplies values by before dropout: the softmax of the scores, 0 where the
    mask hides a key. Queries, keys and values are [batch, heads, length, head size]. Layers without a gradient still use torch's attention
    kernel; only the wanted scores are computed beside it.
    """
    headless = headless_layers(model.config)
    capture = _Capture(wanted, (layer for layer in count() if layer not in headless))
    before = model.config._attn_implementation
    token = _current.set(capture)
    model.config._attn_implementation = _NAME
    try:
        with redirected_attention(model, _attention):
            yield capture.tensors
    finally:
        model.config._attn_implementation = before
        _current.reset(token)


def headless_layers(config: Any) -> frozenset[int]:
    """Return the numbers of the layers of a pruned model that have no heads."""
    shape = PrunedShape.of(vars(config))
    return frozenset(layer for layer, heads in enumerate(shape.heads if shape else ()) if not heads)


def attention_scores(query: Tensor, key: Tensor, scaling: float | None) -> Tensor:
    """Return Q Kᵀ · scaling, [batch, heads, query, key]; `scaling` defaults to 1/√(head size)."""
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return torch.matmul(query * scale, key.transpose(-1, -2))


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    bias: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    capture = _current.get()
    layer = next(capture.layers)
    for kind, tensor in zip(("queries", "keys", "values"), (query, key, value), strict=True):
        if (kind, layer) in capture.wanted:
            capture.tensors[kind, layer] = tensor
    rate = options.get("dropout", 0.0)
    whole = query.device.type == "cpu" and _is_plain_faster(query, rate)
    if whole or {("scores", layer), ("weights", layer)} & capture.wanted:
        scores = attention_scores(query, key, options.get("scaling"))
        scores = scores if bias is None else scores + bias.to(scores.dtype)
        if ("scores", layer) in capture.wanted:
            capture.tensors["scores", layer] = scores
        if ("weights", layer) in capture.wanted:
            capture.tensors["weights", layer] = _weights(scores, attention_mask)
        if whole:
            return _plain_attention(scores, value, attention_mask, rate), None
    if bias is not None:
        bias = bias.to(query.dtype)
        attention_mask = bias if attention_mask is None else bias + additive_mask(attention_mask, bias.dtype)
    return sdpa_attention_forward(module, query, key, value, attention_mask, **options)


def additive_mask(mask: Tensor, kind: torch.dtype = torch.float32) -> Tensor:
    """Return what a bool `mask`, True to attend, adds to scores: 0 or the dtype's lowest number."""
    return torch.zeros_like(mask, dtype=kind).masked_fill_(~mask, torch.finfo(kind).min)


def _is_plain_faster(query: Tensor, rate: float) -> bool:
    """Whether plain matmuls train faster than torch's kernel on a CPU: its backward is slow on short texts in bf16, and with dropout it
    falls back to plain matmuls with slow random draws."""
    short = query.dtype == torch.bfloat16 and query.shape[-2] <= _SHORT
    return query.requires_grad and torch.is_grad_enabled() and (rate > 0 or short)


def _plain_attention(scores: Tensor, value: Tensor, mask: Tensor | None, rate: float) -> Tensor:
    """Return softmax(scores) V under `mask` (bool, True to attend): [batch, length, heads, head size].

    In bf16, scores and weights are rounded to bf16, as in transformers' eager attention; torch's kernel keeps them in fp32.
    """
    weights = dropout(_weights(scores, mask), rate)
    return torch.matmul(weights.to(value.dtype), value).transpose(1, 2)


def _weights(scores: Tensor, mask: Tensor | None) -> Tensor:
    return torch.softmax(scores if mask is None else scores + additive_mask(mask, scores.dtype), dim=-1)


AttentionInterface.register(_NAME, _attention)
AttentionMaskInterface.register(_NAME, sdpa_mask)
