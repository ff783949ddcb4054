"""Training precision: autocast around the forwards of training steps only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn


def make_accelerator(precision: str) -> Accelerator:
    """Return an accelerator for the available device with autocast to `precision`: bf16, or fp32 for none.

    accelerate keeps a process's first precision and rejects another one; the reset lets several runs of one process differ.
    """
    AcceleratorState._reset_state()
    return Accelerator(mixed_precision="bf16" if precision == "bf16" else "no")


@contextmanager
def in_fp32(model: nn.Module) -> Iterator[None]:
    """Compute in fp32 while open, like the exported model."""
    under_autocast, model.forward = model.forward, own_forward(model)
    try:
        yield
    finally:
        model.forward = under_autocast


def own_forward(model: nn.Module) -> Callable[..., Any]:
    """Return the forward without accelerate's autocast. accelerate's `unwrap_model` would also remove transformers' decorators."""
    return getattr(model, "_original_forward", model.forward)
