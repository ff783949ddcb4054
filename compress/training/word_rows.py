"""Cut a model's word table, while it is trained, to the rows that the data reads.

At every step an optimizer passes over every row of the table, its gradient and its moments: on short texts that is a large part of the
step, and for a multilingual encoder most of the memory. A row that is never read has no gradient, so AdamW only applies weight decay to it,
a product over the steps, which is applied here afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from ..models.features.named import WORDS
from ..objective import Objective

# Largest share of the table to cut to. The whole table takes four times its size (weights, gradient, two moments); a cut one four
# times its share, plus the whole table once.
_MOST = 0.75


@runtime_checkable
class KnownTokens(Protocol):
    """Batches whose tokens are all known before the first is made."""

    def tokens(self) -> np.ndarray:
        """Return the ids that occur in some batch, including padding, as ascending int64."""
        ...


class WordTable:
    """A model's word table, unchanged."""

    def whole(self, steps: int) -> AbstractContextManager[None]:
        """Give the model its whole table while open, as it is after `steps`."""
        return nullcontext()

    def put_back(self, steps: int) -> None:
        """Restore the model's own table, as it is after `steps`."""

    def to_file(self, parameter: Tensor, tensor: Tensor) -> Tensor:
        """Return the optimizer's state `tensor` of `parameter`; for the table, with all rows."""
        return tensor

    def from_file(self, parameter: Tensor, tensor: Tensor) -> Tensor:
        """Return a weight with all rows, or its optimizer state, in the shape used here."""
        return tensor


class CutWordTable(WordTable):
    """The table, cut to the rows `used`. `decay`: optimizer steps done -> the factor that weight decay has applied to a row without a
    gradient."""

    def __init__(self, table: nn.Embedding, used: np.ndarray, decay: Callable[[int], float]) -> None:
        self._table, self._whole, self._padding, self._decay = table, table.weight, table.padding_idx, decay
        self._used = torch.from_numpy(used).to(table.weight.device)
        # Looking up a missing row is an error.
        self._places = torch.full_like(table.weight[:, 0], -1, dtype=torch.int64)
        self._places[self._used] = torch.arange(len(used), device=self._places.device)
        self._rows = nn.Parameter(table.weight.detach()[self._used])
        self._place_of_padding = next(iter(np.flatnonzero(used == self._padding).tolist()), None)
        self._cut_table()

    def _cut_table(self) -> None:
        self._set_weight(self._rows, self._place_of_padding)
        self._hook = self._table.register_forward_pre_hook(lambda table, ids: (self._places[ids[0]], *ids[1:]))

    def _set_weight(self, weight: Tensor, padding: int | None) -> None:
        self._table.weight, self._table.num_embeddings, self._table.padding_idx = weight, len(weight), padding

    @contextmanager
    def whole(self, steps: int) -> Iterator[None]:
        with torch.no_grad():  # computed from the initial table, so it does not depend on earlier calls
            rows = self._whole * self._decay(steps)
            rows[self._used] = self._rows
        self._hook.remove()
        self._set_weight(nn.Parameter(rows, requires_grad=False), self._padding)
        try:
            yield
        finally:
            self._cut_table()

    @torch.no_grad()
    def put_back(self, steps: int) -> None:
        """Restore the table in place, as memory may have run out."""
        self._hook.remove()
        self._whole *= self._decay(steps)
        self._whole[self._used] = self._rows
        self._set_weight(self._whole, self._padding)

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


def cut_words(model: Any, objective: Objective, data: object, decay: Callable[[int], float]) -> WordTable:
    """Cut the word table of `model`, in place, to the rows that `data` reads.

    The table is unchanged if the rows are unknown or more than `_MOST` of it; if anything but a look-up needs it, such as a tied output
    layer, a loss or fake quantization; and if it is not trained.
    """
    table = model.get_input_embeddings()
    if not isinstance(data, KnownTokens) or WORDS in objective.student_features or not _looks_up_alone(model, table):
        return WordTable()
    used = data.tokens()
    return CutWordTable(table, used, decay) if len(used) <= _MOST * len(table.weight) else WordTable()


def _looks_up_alone(model: nn.Module, table: nn.Module) -> bool:
    if type(table) is not nn.Embedding or not table.weight.requires_grad or table.max_norm is not None:
        return False
    named = sum(parameter is table.weight for _, parameter in model.named_parameters(remove_duplicate=False))
    return named == 1 and not table._forward_hooks and not table._forward_pre_hooks
