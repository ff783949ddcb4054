"""How far rounding alone moves a model's answers."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from ..models.features.named import logits_of

_UNIT = 2.0**-24  # the largest relative error of rounding to float32
_DRAWS = 4


def exact_answers(model: nn.Module, inputs: Mapping[str, Tensor]) -> tuple[np.ndarray, np.ndarray]:
    """Return the float64 logits for `inputs`, int64 [batch, length] each, and how far rounding in float32 moves each number:
    two arrays of the logits' shape. `model`: in eval mode.

    A computation in float32 gives the exact answers of a model with slightly different weights (backward error); a sum of n
    products is off by about √n units of rounding (Higham and Mary, 2019, "A new approach to probabilistic rounding error
    analysis"). So the weights are perturbed at random by that much, and the largest of the changes counts.
    """
    double = copy.deepcopy(model).double()  # one copy for all draws: each takes twice the model's memory
    with torch.inference_mode():
        exact = _logits(double, inputs)
        moved = torch.zeros_like(exact)
        for seed in range(_DRAWS):
            generator = torch.Generator().manual_seed(seed)
            for weight, own in zip(double.parameters(), model.parameters(), strict=True):
                terms = weight[0].numel() if weight.ndim > 1 else 1
                noise = torch.randn(weight.shape, generator=generator, dtype=weight.dtype)
                weight.copy_(noise.mul_(_UNIT * math.sqrt(terms)).add_(1).mul_(own))
            moved = torch.maximum(moved, (_logits(double, inputs) - exact).abs())
    return exact.numpy(), moved.numpy()


def _logits(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    return logits_of(model, model(**inputs), inputs["attention_mask"])
