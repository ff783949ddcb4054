"""Redirect the attention of families with their own attention code through a given function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from ..families import FAMILIES

Attend = Callable[..., tuple[Tensor, None]]

_PARTS = ("query", "key", "value", "output")


@contextmanager
def redirected_attention(model: Any, attend: Attend) -> Iterator[None]:
    """Make layers with their own attention code call `attend` while open, as transformers' `AttentionInterface` does, and with `bias`
    [batch, heads, query, key] to add to the scores. Other models are unchanged."""
    family = FAMILIES.get(model.config.model_type)
    modules: list[Any] = []
    if family is not None and family.attention.own_module:
        for number in range(model.config.num_hidden_layers):
            layer = model.base_model.get_submodule(family.layers.path.format(number))
            parts = [layer.get_submodule(family.layers.parts[part]) for part in _PARTS]
            module: Any = layer.get_submodule(family.attention.own_module)
            if not module.num_attention_heads:
                continue
            module.forward = partial(_forward, module, parts, module.num_attention_heads, attend)
            modules.append(module)
    try:
        yield
    finally:
        for module in modules:
            del module.forward  # uncovers the class's own


def _forward(
    module: nn.Module,
    parts: list[nn.Module],
    heads: int,
    attend: Attend,
    states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor]:
    """Replace MPNetSelfAttention's forward: `states` [batch, length, hidden]; `attention_mask` bool, or float with 0 at visible tokens."""
    *inner, output = parts
    query, key, value = (part(states).unflatten(-1, (heads, -1)).transpose(1, 2) for part in inner)
    mask = attention_mask
    if mask is not None and mask.is_floating_point():
        mask = mask == 0
    dropout: Any = module.dropout
    rate = dropout.p if module.training else 0.0
    context, _ = attend(module, query, key, value, mask, dropout=rate, bias=position_bias)
    return (output(context.flatten(2)),)
