"""Dropout that a CPU draws quickly: torch's takes longer there than the products around it."""

import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 2**16


def dropout(values: Tensor, rate: float) -> Tensor:
    """`values` with each element 0 at probability `rate`, the others scaled up so that the mean is kept; any shape.

    On the CPU one draw of torch's generator serves four elements, so that `rate` is met to the nearest 1/65536, and the
    scale is that of the rate that is met. On other devices this is torch's own dropout.
    """
    zeros = round(rate * _LEVELS)
    if not zeros or values.device.type != "cpu":
        return functional.dropout(values, rate)
    if zeros == _LEVELS:
        return values * 0.0
    draws = torch.empty(-(-values.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    kept = draws.view(torch.int16)[: values.numel()].view(values.shape) >= zeros - _LEVELS // 2
    return values * kept.to(values.dtype).mul_(_LEVELS / (_LEVELS - zeros))


class Dropout(nn.Dropout):
    """torch's module, drawn by `dropout`."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name of the parent
        return dropout(input, self.p) if self.training else input


def draw_quickly(model: nn.Module) -> None:
    """Replace every `nn.Dropout` of `model` in place. Attention that drops by a call of its own is not one of them."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, Dropout(child.p).train(child.training))
