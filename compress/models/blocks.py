"""The blocks of an ALBERT: how far they are from being one, and making them one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..losses import block_spread_loss


def spread(model: Any, groups: int) -> Tensor:
    """`block_spread_loss` of an ALBERT with a block for each layer, if each of `groups` runs of layers shared its mean.

    The mean over the block's tensors and the groups, so that a LayerNorm counts as much as a matrix.
    """
    blocks = [dict(block.named_parameters()) for block in _blocks(model)]
    size = len(blocks) // groups
    runs = [blocks[start : start + size] for start in range(0, len(blocks), size)]
    terms = [
        block_spread_loss(torch.stack([block[name].flatten() for block in run])) for run in runs for name in run[0]
    ]
    return torch.stack(terms).mean()


def tie(untied: Any, into: Any) -> None:
    """Fill `into`, an ALBERT whose layers share weights, from `untied`, the same with a block for each layer.

    What layers share becomes the mean of theirs; everything else is taken over.
    """
    own = {name: tensor for name, tensor in untied.state_dict().items() if "albert_layer_groups." not in name}
    into.load_state_dict(own, strict=False)
    sources = [dict(block.named_parameters()) for block in _blocks(untied)]
    targets = [dict(block.named_parameters()) for block in _blocks(into)]
    uses: dict[int, list[Tensor]] = {}
    kept: dict[int, Tensor] = {}
    for number, source in enumerate(sources):
        target = targets[number * len(targets) // len(sources)]
        for name, parameter in target.items():
            kept[id(parameter)] = parameter
            uses.setdefault(id(parameter), []).append(source[name])
    with torch.no_grad():
        for key, parameter in kept.items():
            parameter.copy_(torch.stack([tensor.double() for tensor in uses[key]]).mean(0))


def _blocks(model: Any) -> list[nn.Module]:
    return [group.albert_layers[0] for group in model.base_model.encoder.albert_layer_groups]
