"""The passes of an ALBERT through its blocks (Lan et al. 2020, arXiv:1909.11942, §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..layer_maps import layer_pairs


@dataclass(frozen=True)
class Repeat:
    """One pass through a block: the `AlbertLayer`, and the teacher layers (from 0) `first` … `last` that it stands for."""

    layer: Any
    first: int
    last: int


def repeats(encoder: Any, *, teacher_layers: int) -> list[Repeat]:
    """The passes of an ALBERT encoder in their order, with the teacher's layers dealt out by the uniform map."""
    config = encoder.config
    count, groups = config.num_hidden_layers, config.num_hidden_groups
    ends = layer_pairs("uniform", student_layers=count, teacher_layers=teacher_layers)
    starts = [0, *(end for _, end in ends)]
    blocks = [group.albert_layers[0] for group in encoder.encoder.albert_layer_groups]
    return [Repeat(blocks[number * groups // count], starts[number], end - 1) for number, (_, end) in enumerate(ends)]


def sharing(passes: Sequence[Repeat]) -> list[list[Repeat]]:
    """The passes of each block, in order of first use."""
    found: dict[int, list[Repeat]] = {}
    for each in passes:
        found.setdefault(id(each.layer), []).append(each)
    return list(found.values())
