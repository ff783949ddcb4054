"""A learned mix of the states of all layers, embeddings included, weighted by softmax(w) (Peters et al. 2018, arXiv:1802.05365, §3.2, eq.
1). The scale γ is left out, as vectors are normalized to length 1.

A model in training has the module `layer_mix`; a checkpoint has the weights in config.json, as `sentence_layers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .vector_layers import AVERAGED, LEARNT, is_mix, layer_weights

# AdamW moves a parameter by about the learning rate, whatever its gradient; 2e-5 is far too little for w.
_STEEPNESS = 100.0  # change of w per change of the parameter


class LayerMix(nn.Module):
    """A mix that starts with `weights`, one for the embeddings and one for each layer."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        smallest = torch.finfo(torch.float32).tiny
        self.scores = nn.Parameter(torch.tensor(weights).clamp(min=smallest).log() / _STEEPNESS)

    def forward(self) -> Tensor:
        """Return the weights [layer + 1], positive and of sum 1."""
        # The value is 100 · scores, the gradient that of w alone: 100 times larger, it would dominate the clipped gradient norm.
        w = self.scores + (_STEEPNESS - 1) * self.scores.detach()
        return w.softmax(dim=0)


def start_mix(model: Any) -> None:
    """Make an encoder's vectors a mix of all its layers' states, starting with equal weights."""
    states = model.config.num_hidden_layers + 1
    setattr(model.config, AVERAGED, [1 / states] * states)
    model.config.output_hidden_states = True
    add_mix(model)


def add_mix(model: Any) -> None:
    """Add the learnable mix to a model whose config has one; other models stay as they are."""
    if is_mix(model.config):
        setattr(model, LEARNT, LayerMix(layer_weights(model.config)))


def learnt_mix(model: Any) -> list[float] | None:
    """Return the current weights of the embeddings and each layer; None if the model learns none."""
    mix = getattr(model, LEARNT, None)
    return None if mix is None else mix().detach().cpu().tolist()


@contextmanager
def written_mix(model: Any) -> Iterator[None]:
    """Put the learnt weights into the config and remove the module while open, so that the model is a plain transformers one."""
    weights = learnt_mix(model)
    if weights is None:
        yield
        return
    setattr(model.config, AVERAGED, weights)
    mix = model._modules.pop(LEARNT)
    try:
        yield
    finally:
        setattr(model, LEARNT, mix)
