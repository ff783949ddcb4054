"""While a model is trained, its word table is cut to the rows that the data reads.

At every step an optimizer passes over every row of the table, its gradient and its moments: on short texts that is a large
part of the step, and of a multilingual encoder most of the memory. A row that is never read has no gradient, and all that
AdamW does to it is weight decay, a product over the steps, which is made up for here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from ..models.features import WORDS
from ..objective import Objective


@runtime_checkable
class KnownTokens(Protocol):
    """Batches of which all tokens are known before the first is made."""

    def tokens(self) -> np.ndarray:
        """Ids that stand in some batch, padding among them, int64 in ascending order."""
        ...


class WordRows:
    """The table of a model, cut to the rows `used`. `decay`: optimizer steps done -> what weight decay has left of a row that has
    no gradient."""

    def __init__(self, table: nn.Embedding, used: Tensor, decay: Callable[[int], float]) -> None:
        self._table, self._whole, self._padding, self._decay = table, table.weight, table.padding_idx, decay
        self._used = used.to(table.weight.device)
        self._places = torch.full_like(table.weight[:, 0], -1, dtype=torch.int64)  # a row that is not there is an error
        self._places[self._used] = torch.arange(len(used), device=self._places.device)
        self._rows = nn.Parameter(table.weight.detach()[self._used])
        self._place_of_padding = next(
            (place for place, token in enumerate(used.tolist()) if token == self._padding), None
        )
        self._cut()

    def _cut(self) -> None:
        self._put(self._rows, self._place_of_padding)
        self._hook = self._table.register_forward_pre_hook(lambda table, ids: (self._places[ids[0]], *ids[1:]))

    def _put(self, weight: Tensor, padding: int | None) -> None:
        self._table.weight, self._table.num_embeddings, self._table.padding_idx = weight, len(weight), padding

    @torch.no_grad()
    def _after(self, steps: int) -> Tensor:
        """All rows as they are after `steps`, made from what they were at the beginning: the same whenever it is asked for."""
        rows = self._whole * self._decay(steps)
        rows[self._used] = self._rows
        return rows

    @contextmanager
    def whole(self, steps: int) -> Iterator[None]:
        """While open, the model has its whole table, as it is after `steps`."""
        self._hook.remove()
        self._put(nn.Parameter(self._after(steps), requires_grad=False), self._padding)
        try:
            yield
        finally:
            self._cut()

    def put_back(self, steps: int) -> None:
        """Give the model its own table again, as it is after `steps`."""
        self._hook.remove()
        with torch.no_grad():
            self._whole.copy_(self._after(steps))
        self._put(self._whole, self._padding)


def cut_words(model: Any, objective: Objective, data: object, decay: Callable[[int], float]) -> WordRows | None:
    """Cut the word table of `model`, in place, to what `data` reads.

    None, and the model as it was, where that is not known or is everything, and where more than a look-up needs the table: a tied
    output layer, a loss, or fake quantization; or where it is not trained.
    """
    table = model.get_input_embeddings()
    if not isinstance(data, KnownTokens) or WORDS in objective.student_features or not _looks_up_alone(model, table):
        return None
    used = data.tokens()
    return WordRows(table, torch.from_numpy(used), decay) if len(used) < len(table.weight) else None


def _looks_up_alone(model: nn.Module, table: nn.Module) -> bool:
    if type(table) is not nn.Embedding or not table.weight.requires_grad or table.max_norm is not None:
        return False
    named = sum(parameter is table.weight for _, parameter in model.named_parameters(remove_duplicate=False))
    return named == 1 and not table._forward_hooks and not table._forward_pre_hooks
