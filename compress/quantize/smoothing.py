"""SmoothQuant (Xiao et al. 2023, arXiv:2211.10438): what is hard to quantize in an activation moves into the weights.

A product X W is (X / s)(s W) for any factors s > 0, one for each channel of X. With s_j = max|X_j|^α / max|W_j|^(1-α)
(equation 4) channels that stick out share the difficulty with the weights. The paper folds 1 / s into the norm before;
BERT's norms come after the residual, which reads the same tensor, and folding would then need a product by s on that
path: as dear as the product by 1 / s that stands here, which leaves the rest of the graph alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from ..graphs import drop_unused, replace_all
from ..packed import before_packing
from .choosing import Choice
from .ranges import Range
from .sampling import Feed, Sample
from .weights import to_int8

ALPHAS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_ROWS = 1024  # tokens, of each tensor, on which an α is judged
_GAIN = 0.9  # of the error without: what a product by 1 / s must at least bring to be worth its time
_LEAST = 1e-5  # of a channel's largest value

Array = np.ndarray
Factors = dict[str, Array]


def find_factors(
    model: ModelProto, choice: Choice, feeds: Sequence[Feed], *, alpha: float | None, per_channel: bool = True
) -> tuple[Factors, dict[str, float]]:
    """(tensor -> its factors [channel], tensor -> its α), of the inputs of int8 products that smoothing serves.

    Without an `alpha`, each tensor gets the one of `ALPHAS` with the least squared error of its products on tokens of
    `feeds`, and none where no α takes a tenth off it. Tensors whose products share weights have theirs in common.
    """
    factors: Factors = {}
    alphas: dict[str, float] = {}
    groups = _groups(model, choice)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    with Sample(model, [name for group in groups for name in group[0]], feeds) as sample:
        rows = sample.rows(_ROWS)
    for tensors, weights in groups:
        states = np.concatenate([rows[name] for name in tensors])
        matrices = [numpy_helper.to_array(stored[name]) for name in weights]
        found = _best(states, matrices, ALPHAS if alpha is None else (alpha,), 0 if per_channel else None)
        if found is not None and (alpha is not None or found[2] < _GAIN):
            factors |= dict.fromkeys(tensors, found[1])
            alphas |= dict.fromkeys(tensors, found[0])
    return factors, alphas
