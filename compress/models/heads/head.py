"""What a model for one kind of task has on top of its encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...losses.loss import Unit

if TYPE_CHECKING:
    from torch import Tensor

Loss = Callable[[Any, "Tensor", Any, Mapping[str, "Tensor"]], "Tensor"]  # of (spec, student, teacher or None, batch)


@dataclass(frozen=True)
class Head:
    """`model`: the class of transformers that loads any family with this head; `suffixes` end the names of the families' own, but
    those of `others`, which have another head.

    `trained`: what names of the head's own weights begin with. `new`: parts of the names of weights that a checkpoint
    without the head may lack. `losses`: by the name of a loss on logits, what it is for this kind, where that is not what it
    is for classes. `equal`: losses that are another for this kind. `means_over`: what losses are means over, where not over examples.

    `on_tokens`: the module that takes each token's last state to logits [batch, length, label], in all families that have names for
    their parts; None: it reads one token. `outputs`: of transformers' model, and of the graph; where there are several, logits are
    these side by side. `bare`: it has no weights and reads the last states themselves, so that the model is an encoder alone, without
    a pooler, and its output is the graph's. `pooled`: transformers' classes read the encoder's pooler, also in families whose classifiers
    of texts do not; they take questions of several rows, and here each row for itself (`usable_classes`).
    """

    model: str
    suffixes: tuple[str, ...]
    trained: tuple[str, ...]
    new: tuple[str, ...]
    losses: Mapping[str, Loss] = field(default_factory=dict)
    equal: Mapping[str, str] = field(default_factory=dict)
    means_over: Mapping[str, Unit] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    on_tokens: str | None = None
    outputs: tuple[str, ...] = ("logits",)
    bare: bool = False
    pooled: bool = False

    @property
    def per_token(self) -> bool:
        """Whether every token has logits."""
        return self.on_tokens is not None

    def is_of(self, architecture: str) -> bool:
        """Whether a class of transformers, by its name, has this head."""
        return architecture.endswith(self.suffixes) and architecture not in self.others
