"""A wider or deeper BERT from a smaller trained one: width by duplicated units, which leaves what it computes as it was
(Chen et al. 2015, Net2Net, arXiv:1511.05641, §2.2; Chen et al. 2022, bert2BERT, arXiv:2110.07143, §4.1), depth by the layers
stacked again (Gong et al. 2019, StackBERT), which does not.

A unit of the small model becomes several alike; whoever reads them has the weight of the one split among theirs. Were it
split evenly, copies would have the same gradient and stay alike, so each share is drawn.
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

_LEAST = 0.25  # of an even share; the rest of it is drawn
_LAYER = re.compile(r"(.*encoder\.layer\.)(\d+)(\..*)")


def check_growth(small: Dimensions, large: Dimensions, *, source: str) -> None:
    """Raise `CompressError` for sizes that `grow` cannot make of `small`, naming the field."""
    if small.architecture != large.architecture:
        raise CompressError(f"random.grow_from: {source} is a {small.architecture}; expected a {large.architecture}")
    for name in ("layers", "hidden", "heads", "intermediate", "positions"):
        if getattr(large, name) < getattr(small, name):
            raise CompressError(
                f"random.{name}: expected at least the {getattr(small, name)} of {source}, found {getattr(large, name)}"
            )
    if large.hidden % small.hidden:
        raise CompressError(
            f"random.hidden: expected a multiple of the {small.hidden} of {source}, found {large.hidden}: every unit is copied "
            "as often, so that LayerNorm's mean is kept"
        )
    if large.hidden // large.heads != small.hidden // small.heads:
        raise CompressError(
            f"random.heads: expected heads of {small.hidden // small.heads} as in {source}, {large.hidden} / "
            f"{large.heads} gives {large.hidden / large.heads:g}"
        )


def grow(state: Mapping[str, Tensor], small: Dimensions, large: Dimensions, *, seed: int) -> dict[str, Tensor]:
    """State of a BERT of `large` sizes, encoder alone or under a masked-LM head, out of that of one of `small` sizes.

    Of as many layers the outputs are the same but for rounding. New positions repeat the last of the small model. The
    tied decoder reads the LayerNorm of the head's transform, whose weight and bias are divided by the copies instead.
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
    axes = FAMILIES[large.architecture].growth
    if axes is None:
        raise RuntimeError(f"a {large.architecture} does not grow")
    grown: dict[str, Tensor] = {}
    for name, tensor in _stacked(state, small.layers, large.layers).items():
        value = _widened(tensor, _axes(name, axes), units, generator)
        if name.endswith("position_embeddings.weight"):
            value = torch.cat([value, value[-1:].expand(large.positions - len(value), -1)])
        if "transform.LayerNorm" in name:
            value = value / (large.hidden // small.hidden)
        grown[name] = value.contiguous()
    return grown


def _stacked(state: Mapping[str, Tensor], layers: int, wanted: int) -> dict[str, Tensor]:
    """The layers again and again, up to `wanted`."""
    found = {}
    for name, tensor in state.items():
        match = _LAYER.fullmatch(name)
        numbers = range(int(match[2]), wanted, layers) if match else ()
        found |= {f"{match[1]}{number}{match[3]}": tensor for number in numbers} if match else {name: tensor}
    return found


def _axes(name: str, known: Mapping[str, str]) -> str:
    found = next((axes for part, axes in known.items() if part in name), None)
    if found is None:
        raise RuntimeError(f"a weight that growth does not know: {name}")
    return found


def _widened(tensor: Tensor, axes: str, units: Mapping[str, Tensor], generator: torch.Generator) -> Tensor:
    """Copies along what is given, shares along what is read."""
    if axes[0] in units:
        tensor = tensor[units[axes[0]]]
    if tensor.ndim < 2 or axes[1] not in units:
        return tensor
    wide = tensor[:, units[axes[1]]]
    return wide if axes[0] == "-" else wide * _shares(units[axes[1]], len(wide), generator).to(wide)


def _shares(units: Tensor, rows: int, generator: torch.Generator) -> Tensor:
    """[row, unit]: what each copy has of a weight, 1 in sum over the copies of a unit."""
    import torch

    drawn = _LEAST + torch.rand(rows, len(units), generator=generator, dtype=torch.float64)
    sums = torch.zeros(rows, int(units.max()) + 1, dtype=torch.float64).index_add_(1, units, drawn)
    return drawn / sums[:, units]
