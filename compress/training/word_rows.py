"""While a model is trained, its word table is cut to the rows that the data reads.

At every step an optimizer passes over every row of the table, its gradient and its moments: on short texts that is a large
part of the step, and of a multilingual encoder most of the memory. A row that is never read has no gradient, and all that
AdamW does to it is weight decay, a product over the steps, which is made up for here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from ..models.features import WORDS
from ..objective import Objective

# Of a table. Whole, it takes four times its size: weights, gradient, two moments. Cut to a share, four times that, and itself.
_MOST = 0.75


@runtime_checkable
class KnownTokens(Protocol):
    """Batches of which all tokens are known before the first is made."""

    def tokens(self) -> np.ndarray:
        """Ids that stand in some batch, padding among them, int64 in ascending order."""
        ...


class Words:
    """The table of a model's words, as it is."""

    def whole(self, steps: int) -> AbstractContextManager[None]:
        """While open, the model has its whole table, as it is after `steps`."""
        return nullcontext()

    def put_back(self, steps: int) -> None:
        """Give the model its own table again, as it is after `steps`."""

    def to_file(self, parameter: Tensor, tensor: Tensor) -> Tensor:
        """What an optimizer keeps of `parameter`; if that is the table, of all rows."""
        return tensor

    def from_file(self, parameter: Tensor, tensor: Tensor) -> Tensor:
        """A weight of all rows, or what an optimizer keeps of one, as it is here."""
        return tensor


class CutWords(Words):
    """The table, cut to the rows `used`. `decay`: optimizer steps done -> what weight decay has left of a row without a gradient."""

    def __init__(self, table: nn.Embedding, used: np.ndarray, decay: Callable[[int], float]) -> None:
        self._table, self._whole, self._padding, self._decay = table, table.weight, table.padding_idx, decay
        self._used = torch.from_numpy(used).to(table.weight.device)
        self._places = torch.full_like(table.weight[:, 0], -1, dtype=torch.int64)  # a row that is not there is an error
        self._places[self._used] = torch.arange(len(used), device=self._places.device)
        self._rows = nn.Parameter(table.weight.detach()[self._used])
        self._place_of_padding = next(iter(np.flatnonzero(used == self._padding).tolist()), None)
        self._cut()

    def _cut(self) -> None:
        self._put(self._rows, self._place_of_padding)
        self._hook = self._table.register_forward_pre_hook(lambda table, ids: (self._places[ids[0]], *ids[1:]))

    def _put(self, weight: Tensor, padding: int | None) -> None:
        self._table.weight, self._table.num_embeddings, self._table.padding_idx = weight, len(weight), padding

    @contextmanager
    def whole(self, steps: int) -> Iterator[None]:
        with torch.no_grad():  # made from what it was at the beginning, so the same whenever it is asked for
            rows = self._whole * self._decay(steps)
            rows[self._used] = self._rows
        self._hook.remove()
        self._put(nn.Parameter(rows, requires_grad=False), self._padding)
        try:
            yield
        finally:
            self._cut()

    @torch.no_grad()
    def put_back(self, steps: int) -> None:
        """In place: it may be called because there was no memory left."""
        self._hook.remove()
        self._whole *= self._decay(steps)
        self._whole[self._used] = self._rows
        self._put(self._whole, self._padding)

    def to_file(self, parameter: Tensor, tensor: Tensor) -> Tensor:
        if not self._is_of_rows(parameter, tensor, len(self._rows)):
            return tensor
        every = tensor.new_zeros(self._whole.shape)
        every[self._used.to(tensor.device)] = tensor
        return every

    def from_file(self, parameter: Tensor, tensor: Tensor) -> Tensor:
        return tensor[self._used.to(tensor.device)] if self._is_of_rows(parameter, tensor, len(self._whole)) else tensor

    def _is_of_rows(self, parameter: Tensor, tensor: Tensor, count: int) -> bool:
        return parameter is self._rows and tensor.shape[:1] == (count,)


def cut_words(model: Any, objective: Objective, data: object, decay: Callable[[int], float]) -> Words:
    """Cut the word table of `model`, in place, to what `data` reads.

    It stays as it is where that is not known or is more than `_MOST` of it; where more than a look-up needs the table: a tied
    output layer, a loss, or fake quantization; and where it is not trained.
    """
    table = model.get_input_embeddings()
    if not isinstance(data, KnownTokens) or WORDS in objective.student_features or not _looks_up_alone(model, table):
        return Words()
    used = data.tokens()
    return CutWords(table, used, decay) if len(used) <= _MOST * len(table.weight) else Words()


def _looks_up_alone(model: nn.Module, table: nn.Module) -> bool:
    if type(table) is not nn.Embedding or not table.weight.requires_grad or table.max_norm is not None:
        return False
    named = sum(parameter is table.weight for _, parameter in model.named_parameters(remove_duplicate=False))
    return named == 1 and not table._forward_hooks and not table._forward_pre_hooks
