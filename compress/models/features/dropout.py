"""Dropout with fast random draws on a CPU, where torch's takes longer than the matmuls around it."""

import torch
from torch import Tensor, nn
from torch.nn import functional

_LEVELS = 2**16


def dropout(values: Tensor, rate: float) -> Tensor:
    """Return `values`, of any shape, with each element 0 with probability `rate` and the others scaled up to keep the mean.

    On a CPU one draw of torch's generator serves four elements, so `rate` is rounded to the nearest 1/65536 and the scale follows the
    rounded rate. Other devices use torch's own dropout.
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
    """torch's module, with the draws of `dropout`."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the name of the parent
        return dropout(input, self.p) if self.training else input


def draw_quickly(model: nn.Module) -> None:
    """Replace every `nn.Dropout` of `model` in place, but not attention dropout by function call."""
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout:
                setattr(parent, name, Dropout(child.p).train(child.training))
