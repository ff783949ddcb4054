"""A learned mix of the states of all layers, embeddings included: softmax(w), one weight for each (Peters et al. 2018,
arXiv:1802.05365, §3.2, eq. 1). Its scale γ is left out: vectors are made of length 1.

A model in training has the module `layer_mix`; in a checkpoint the weights stand in config.json, as `sentence_layers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .vector_layers import AVERAGED, LEARNT, is_mix, layer_weights

_STEEPNESS = (
    100.0  # AdamW moves a number by the learning rate at most, whatever the gradient: 2e-5 is far too little for w
)


class LayerMix(nn.Module):
    """Begins at the given `weights`, of the embeddings and each layer."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        smallest = torch.finfo(torch.float32).tiny
        self.scores = nn.Parameter(torch.tensor(weights).clamp(min=smallest).log() / _STEEPNESS)

    def forward(self) -> Tensor:
        """[layer + 1], positive, of sum 1."""
        return (_STEEPNESS * self.scores).softmax(dim=0)


def start_mix(model: Any) -> None:
    """Let the vectors of an encoder be a mix of all its layers' states, which begins with equal weights."""
    states = model.config.num_hidden_layers + 1
    setattr(model.config, AVERAGED, [1 / states] * states)
    model.config.output_hidden_states = True
    add_mix(model)


def add_mix(model: Any) -> None:
    """Let a model whose config says that its layers' states are mixed learn how; any other stays as it is."""
    if is_mix(model.config):
        setattr(model, LEARNT, LayerMix(layer_weights(model.config)))


def learnt_mix(model: Any) -> list[float] | None:
    """The weights of the embeddings and each layer as they are now; None where the model learns none."""
    mix = getattr(model, LEARNT, None)
    return None if mix is None else mix().detach().cpu().tolist()


@contextmanager
def written_mix(model: Any) -> Iterator[None]:
    """Inside, the config has the learnt weights and the model is one of transformers alone."""
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
