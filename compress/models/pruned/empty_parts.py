"""Replacements for parts of a layer that are pruned away completely: attention without heads and feed-forward parts without neurons. Only
the bias of the output matrix stays, so the part computes LayerNorm(states + bias). That norm is not redundant: it follows another one whose
gain leaves states of any variance."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn


class NoOutputs(nn.Module):
    """Replaces a linear layer that has no outputs left."""

    def __init__(self, in_features: int) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, 0

    @property
    def weight(self) -> Float[Tensor, "0 in"]:
        return torch.empty(0, self.in_features)

    @property
    def bias(self) -> Float[Tensor, " 0"]:
        return torch.empty(0)

    def forward(self, inputs: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch 0"]:
        return inputs[..., :0]


class NoInputs(nn.Module):
    """Replaces a linear layer that has no inputs left; the bias is its only parameter. Checkpoints keep the empty weight: transformers
    would initialise a missing weight at random, but rejects one of an unexpected shape."""

    weight: Float[Tensor, "out 0"]

    def __init__(self, out_features: int, like: Tensor) -> None:
        super().__init__()
        self.in_features, self.out_features = 0, out_features
        self.register_buffer("weight", like.new_zeros(out_features, 0))
        self.bias = nn.Parameter(like.new_zeros(out_features))

    def forward(self, inputs: Float[Tensor, "*batch 0"]) -> Float[Tensor, "*batch out"]:
        return self.bias.expand(*inputs.shape[:-1], -1)


def linear_or_empty(in_features: int, out_features: int, like: Tensor) -> nn.Module:
    """Return a linear layer with the dtype and device of `like`, or the replacement for one without inputs or outputs."""
    if not out_features:
        return NoOutputs(in_features)
    if not in_features:
        return NoInputs(out_features, like)
    return nn.Linear(in_features, out_features, device=like.device, dtype=like.dtype)


@cache
def headless_class(kind: Any, output: str | None) -> Any:
    """Return the subclass of `kind`, a transformers attention class, without heads. `output`: its own output matrix, None if that is
    outside."""

    def forward(self: Any, hidden_states: Tensor, *words: Any, **more: Any) -> tuple[Tensor, None]:
        context = hidden_states[..., :0]
        return (context if output is None else self.get_submodule(output)(context)), None

    about = f"{kind.__name__} without heads."
    fields = {"forward": forward, "__doc__": about, "__module__": __name__}
    return type(f"Headless{kind.__name__}", (kind,), fields)
