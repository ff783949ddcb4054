"""What a model for one kind of task has on top of its encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Loss = Callable[[Any, "Tensor", Any, Mapping[str, "Tensor"]], "Tensor"]  # of (spec, student, teacher or None, batch)


@dataclass(frozen=True)
class Head:
    """`model`: the class of transformers that loads any family with this head; `suffix` ends the names of the families' own.

    `trained`: what names of the head's own weights begin with. `new`: parts of the names of weights that a checkpoint
    without the head may lack. `losses`: by the name of a loss on logits, what it is for this kind, where that is not what it
    is for classes. `equal`: losses that are another for this kind. `per_token`: its logits are [batch, length, label], of every
    token, and the losses on them means over tokens. `bare`: it has no weights and reads the last states themselves, so that the model is an
    encoder alone, without a pooler. `output`: what a graph calls what the model gives.
    """

    model: str
    suffix: str
    trained: tuple[str, ...]
    new: tuple[str, ...]
    losses: Mapping[str, Loss] = field(default_factory=dict)
    equal: Mapping[str, str] = field(default_factory=dict)
    per_token: bool = False
    bare: bool = False
    output: str = "logits"
