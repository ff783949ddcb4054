"""The precision of a training: autocast around the forwards of its steps alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import nn


def make_accelerator(precision: str) -> Accelerator:
    """The device at hand with autocast to `precision`: bf16, or fp32 for none.

    accelerate keeps the first precision of a process and refuses another one; runs of one
    process may differ in it.
    """
    AcceleratorState._reset_state()
    return Accelerator(mixed_precision="bf16" if precision == "bf16" else "no")


@contextmanager
def in_fp32(model: nn.Module) -> Iterator[None]:
    """As what is exported of it computes."""
    under_autocast, model.forward = model.forward, own_forward(model)
    try:
        yield
    finally:
        model.forward = under_autocast


def own_forward(model: nn.Module) -> Callable[..., Any]:
    """Without the autocast that accelerate puts around it. accelerate's `unwrap_model` takes transformers' decorators off as well."""
    return getattr(model, "_original_forward", model.forward)
