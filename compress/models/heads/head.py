"""What a model for one task kind has on top of its encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...losses.loss import Loss, LossForm


@dataclass(frozen=True)
class Head:
    """The head for one task kind.

    `model`: the transformers class that loads any family with this head; class names of this head end in one of `suffixes`, except
    `others`, which have another head. `trained`: prefixes of the head's own weight names. `new`: parts of weight names that a checkpoint
    without the head may lack. `losses`: name of a loss on logits -> its form for this kind, if it differs from `Loss.form`. `on_tokens`:
    the module that maps each token's last state to logits [batch, length, label], in all families with named parts; None: the head reads
    one token. `outputs`: of transformers' model and of the graph; several are stacked to give the logits. `bare`: the head has no weights
    and reads the last states, so the model is an encoder without a pooler. `pooled`: transformers' classes read the encoder's pooler, even
    in families whose text classifiers do not; they take questions of several rows, here one row each (`usable_classes`).
    """

    model: str
    suffixes: tuple[str, ...]
    trained: tuple[str, ...]
    new: tuple[str, ...]
    losses: Mapping[str, LossForm] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    on_tokens: str | None = None
    outputs: tuple[str, ...] = ("logits",)
    bare: bool = False
    pooled: bool = False

    @property
    def per_token(self) -> bool:
        """Whether every token has logits."""
        return self.on_tokens is not None

    def form_of(self, loss: Loss) -> LossForm:
        """How a loss is computed for this kind."""
        return self.losses.get(loss.name, loss.form)

    def is_of(self, architecture: str) -> bool:
        """Whether a transformers class name has this head."""
        return architecture.endswith(self.suffixes) and architecture not in self.others
