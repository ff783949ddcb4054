"""Grow a wider or deeper BERT from a smaller trained one. Width duplicates units, which preserves the function (Chen et al. 2015, Net2Net,
arXiv:1511.05641, §2.2; Chen et al. 2022, bert2BERT, arXiv:2110.07143, §4.1). Depth repeats the stack of layers (Gong et al. 2019,
StackBERT), which does not.

Each unit of the small model becomes several copies, and the weights that read it are divided among them. Equal parts would give all copies
the same gradient and keep them alike, so the shares are random.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import CompressError
from .dimensions import Dimensions
from .families import FAMILIES

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_LEAST = 0.25  # minimum before normalizing; up to 1 more is random
_LAYER = re.compile(r"(.*encoder\.layer\.)(\d+)(\..*)")


def check_growth(small: Dimensions, large: Dimensions, *, source: str) -> None:
    """Raise `CompressError`, naming the field, for sizes that `grow` cannot reach from `small`."""
    if small.architecture != large.architecture:
        raise CompressError(f"random.grow_from: {source} is a {small.architecture}; expected a {large.architecture}")
    for name in ("layers", "hidden", "heads", "intermediate", "positions"):
        if getattr(large, name) < getattr(small, name):
            raise CompressError(
                f"random.{name}: expected at least the {getattr(small, name)} of {source}, found {getattr(large, name)}"
            )
    if large.hidden % small.hidden:
        raise CompressError(
            f"random.hidden: expected a multiple of the {small.hidden} of {source}, found {large.hidden}: every "
            "unit is copied equally often, so that LayerNorm's mean is kept"
        )
    if large.hidden // large.heads != small.hidden // small.heads:
        raise CompressError(
            f"random.heads: expected heads of {small.hidden // small.heads} as in {source}, {large.hidden} / "
            f"{large.heads} gives {large.hidden / large.heads:g}"
        )


def grow(state: Mapping[str, Tensor], small: Dimensions, large: Dimensions, *, seed: int) -> dict[str, Tensor]:
    """Return the state of a BERT of `large` sizes, grown from one of `small` sizes; encoder alone or with a masked-LM head.

    With equal depth, outputs are the same up to rounding. New positions repeat the small model's last one. The tied decoder reads the
    LayerNorm of the head's transform, so that norm's weight and bias are divided by the number of copies instead.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    size = large.hidden // large.heads
    heads = torch.arange(large.heads) % small.heads
    units = {
        "h": torch.arange(large.hidden) % small.hidden,
        "a": (heads[:, None] * size + torch.arange(size)).flatten(),
        "f": torch.arange(large.intermediate) % small.intermediate,
    }
    axes = FAMILIES[large.architecture].random.growth
    if axes is None:
        raise RuntimeError(f"a {large.architecture} does not grow")
    grown: dict[str, Tensor] = {}
    for name, tensor in _stack_layers(state, small.layers, large.layers).items():
        value = _widen_weight(tensor, _axes(name, axes), units, generator)
        if name.endswith("position_embeddings.weight"):
            value = torch.cat([value, value[-1:].expand(large.positions - len(value), -1)])
        if "transform.LayerNorm" in name:
            value = value / (large.hidden // small.hidden)
        grown[name] = value.contiguous()
    return grown


def _stack_layers(state: Mapping[str, Tensor], layers: int, wanted: int) -> dict[str, Tensor]:
    """Return the stack of layers repeated up to `wanted` layers."""
    stack = {}
    for name, tensor in state.items():
        match = _LAYER.fullmatch(name)
        numbers = range(int(match[2]), wanted, layers) if match else ()
        stack |= {f"{match[1]}{number}{match[3]}": tensor for number in numbers} if match else {name: tensor}
    return stack


def _axes(name: str, known: Mapping[str, str]) -> str:
    axes = next((letters for part, letters in known.items() if part in name), None)
    if axes is None:
        raise RuntimeError(f"a weight that growth does not know: {name}")
    return axes


def _widen_weight(tensor: Tensor, axes: str, units: Mapping[str, Tensor], generator: torch.Generator) -> Tensor:
    """Return the weight with copied output units and shared-out input weights."""
    if axes[0] in units:
        tensor = tensor[units[axes[0]]]
    if tensor.ndim < 2 or axes[1] not in units:
        return tensor
    wide = tensor[:, units[axes[1]]]
    return wide if axes[0] == "-" else wide * _shares(units[axes[1]], len(wide), generator).to(wide)


def _shares(units: Tensor, rows: int, generator: torch.Generator) -> Tensor:
    """Return [row, unit]: each copy's share of a weight; shares sum to 1 over the copies of a unit."""
    import torch

    drawn = _LEAST + torch.rand(rows, len(units), generator=generator, dtype=torch.float64)
    sums = torch.zeros(rows, int(units.max()) + 1, dtype=torch.float64).index_add_(1, units, drawn)
    return drawn / sums[:, units]
