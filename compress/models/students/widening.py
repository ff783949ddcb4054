"""Convert embedding tables with a projection, as in ELECTRA and ALBERT, to tables of the hidden size, as in BERT.

The former normalise the sum of three rows and then project it; the latter sum projected rows and then normalise. Without the LayerNorms
both would be equal. The student's LayerNorm is fitted to the teacher's outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .activations import array
from .algebra import fitted_norm

if TYPE_CHECKING:
    from torch import Tensor

_ROWS = 4096  # words used for the fit, spread over the vocabulary
_GAIN, _BIAS = "LayerNorm.weight", "LayerNorm.bias"


def widen_tables(tables: Mapping[str, Tensor], matrix: Tensor, bias: Tensor, epsilon: float) -> dict[str, Tensor]:
    """Return tables [row, hidden] and a LayerNorm with `epsilon` for `tables` [row, embedding], `*_embeddings.weight`, and their LayerNorm,
    followed by `matrix` [hidden, embedding] and `bias`."""
    import torch

    through, gain = array(matrix), array(tables[_GAIN])
    centred = {name: array(table) for name, table in tables.items() if name not in (_GAIN, _BIAS)}
    centred = {name: table - table.mean(1, keepdims=True) for name, table in centred.items()}
    wide = {name: (table * gain) @ through.T for name, table in centred.items()}
    student_sums, teacher_sums = _sums(wide), _sums(centred)
    normal = teacher_sums / np.sqrt((teacher_sums**2).mean(1, keepdims=True) + epsilon) * gain + array(tables[_BIAS])
    fitted = fitted_norm(student_sums, normal @ through.T + array(bias), epsilon)
    arrays = wide | dict(zip((_GAIN, _BIAS), fitted, strict=True))
    return {name: torch.from_numpy(values).to(matrix.dtype) for name, values in arrays.items()}


def _sums(tables: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return sums of one word, one position and one segment, [sum, size]: words spread over the vocabulary, positions and segments in
    turn."""
    words = next(iter(tables.values()))
    chosen = np.linspace(0, len(words) - 1, min(_ROWS, len(words))).astype(np.int64)
    total = words[chosen]
    for table in list(tables.values())[1:]:
        total = total + table[np.arange(len(chosen)) % len(table)]
    return total
