"""Helpers of the loss tests: an independent softmax, gradients, and padding that is overwritten or added."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
REAL = [(0, 5), (1, 3), (2, 1)]  # example, its tokens
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def grad(loss: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    leaf = at.clone().requires_grad_()
    loss(leaf).backward()
    assert leaf.grad is not None
    return leaf.grad


def spoiled(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Overwrite the values with large noise wherever a token along one of `axes` is padding."""
    padding = torch.zeros_like(values, dtype=torch.bool)
    for axis in axes:
        shape = [1] * values.ndim
        shape[0], shape[axis] = MASK.shape
        padding |= (MASK == 0).reshape(shape)
    return torch.where(padding, 1e3 * torch.randn_like(values), values)


def extended(values: Tensor, axes: tuple[int, ...], more: int = 4) -> Tensor:
    """Append `more` tokens of noise along each of `axes`."""
    for axis in axes:
        shape = list(values.shape)
        shape[axis] = more
        values = torch.cat([values, torch.randn(shape, dtype=values.dtype)], dim=axis)
    return values
