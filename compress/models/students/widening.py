"""Tables behind a matrix, as ELECTRA and ALBERT have them, as tables of the hidden size, as BERT has them.

There the sum of three rows is normalised and then taken to the hidden size; here the rows are taken there and their sum is
normalised. Without the two LayerNorms it would be the same. The student's is fitted to what the teacher's tables give.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .activations import array
from .algebra import fitted_norm

if TYPE_CHECKING:
    from torch import Tensor

_ROWS = 4096  # words that the fit looks at, spread over the vocabulary
_GAIN, _BIAS = "LayerNorm.weight", "LayerNorm.bias"


def widened(tables: Mapping[str, Tensor], matrix: Tensor, bias: Tensor, epsilon: float) -> dict[str, Tensor]:
    """`tables` [row, embedding], `*_embeddings.weight`, and their LayerNorm, behind `matrix` [hidden, embedding] and `bias`:
    tables [row, hidden], and a LayerNorm with `epsilon`."""
    import torch

    through, gain = array(matrix), array(tables[_GAIN])
    centred = {name: array(table) for name, table in tables.items() if name not in (_GAIN, _BIAS)}
    centred = {name: table - table.mean(1, keepdims=True) for name, table in centred.items()}
    wide = {name: (table * gain) @ through.T for name, table in centred.items()}
    own, theirs = _sums(wide), _sums(centred)
    normal = theirs / np.sqrt((theirs**2).mean(1, keepdims=True) + epsilon) * gain + array(tables[_BIAS])
    fitted = fitted_norm(own, normal @ through.T + array(bias), epsilon)
    made = wide | dict(zip((_GAIN, _BIAS), fitted, strict=True))
    return {name: torch.from_numpy(values).to(matrix.dtype) for name, values in made.items()}


def _sums(tables: Mapping[str, np.ndarray]) -> np.ndarray:
    """A word, a position and a segment each time, [sum, size]: words spread over the vocabulary, positions in turn."""
    words = next(iter(tables.values()))
    chosen = np.linspace(0, len(words) - 1, min(_ROWS, len(words))).astype(np.int64)
    total = words[chosen]
    for table in list(tables.values())[1:]:
        total = total + table[np.arange(len(chosen)) % len(table)]
    return total
