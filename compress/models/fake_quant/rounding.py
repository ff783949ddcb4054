"""Int8 rounding of weights and activations, in floats, with straight-through gradients."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from .spec import CODES, LARGEST, LEAST_SCALE

STEPS = 255  # between the lowest and the highest of an activation's 256 quantized values


def round_weight(
    weight: Float[Tensor, "out in"], *, per_channel: bool, bits: int, channel_repeats: Int[Tensor, " in"] | None = None
) -> Float[Tensor, "out in"]:
    """Return the dequantized int8 of `weight`: symmetric, from the largest absolute value per output channel, or of all.

    Input channels occur `channel_repeats` times in the file, with their weights divided among the copies, and so are smaller there. The
    scale follows the current weight. It clips nothing, so every weight receives its whole gradient (Jacob et al. 2018, arXiv:1712.05877,
    section 3). `bits` of 7 leave the outermost values unused.
    """
    parts = 1.0 if channel_repeats is None else channel_repeats.to(weight.dtype)
    return weight + (_symmetric(weight.detach(), (1,) if per_channel else (0, 1), bits, parts) - weight).detach()


def round_rows(
    rows: Float[Tensor, "*shape size"], table: Float[Tensor, "row size"], *, coded: bool
) -> Float[Tensor, "*shape size"]:
    """Return rows looked up in `table` after int8 rounding, with a scale for each row and 127 quantized values on both sides of the mean of
    all rows, or of zero if the scales are `coded`."""
    with torch.no_grad():
        exact = rows.detach().float()
        if coded:
            low, high = torch.aminmax(table)  # in one pass: it is the largest tensor of the model
            int8_rows = _round_coded(exact, torch.maximum(-low, high).float())
        else:
            centre = table.float().mean(0)
            int8_rows = _symmetric(exact - centre, (-1,), 8) + centre
    return rows + (int8_rows - rows).detach()


def _round_coded(rows: Tensor, largest: Tensor) -> Tensor:
    """Return rows rounded with scales that are squares of 255 codes; `largest`: absolute value in the whole table."""
    unit = (largest / LARGEST).clamp(min=LEAST_SCALE) / CODES**2
    codes = (rows.abs().amax(-1, keepdim=True) / LARGEST / unit).sqrt().ceil().clamp(1, CODES)
    scale = codes * codes * unit
    return torch.round(rows / scale).clamp(-LARGEST, LARGEST) * scale


def _symmetric(values: Tensor, axes: tuple[int, ...], bits: int, parts: float | Tensor = 1.0) -> Tensor:
    top = 2 ** (bits - 1) - 1
    largest = (values.float().abs() / parts).amax(axes, keepdim=True)
    scale = torch.where(largest > 0, largest / top, torch.ones_like(largest))
    return torch.round(values.float() / scale) * scale


def parameters(low: Float[Tensor, ""], high: Float[Tensor, ""]) -> tuple[Tensor, Tensor]:
    """Return float32 scale and zero point of 256 quantized values from `low` to `high`; zero is one of them.

    Computed in float64, like ranges read from a file, so that the scale is the same to the bit.
    """
    low, high = low.double().clamp(max=0), high.double().clamp(min=0)
    scale = torch.where(high > low, (high - low) / STEPS, torch.ones_like(high)).float()
    return scale, torch.round(-low.float() / scale).clamp(0, STEPS)


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, low: Tensor, high: Tensor) -> Tensor:
        scale, zero = parameters(low, high)
        quantized = torch.round(states / scale) + zero
        ctx.save_for_backward(states, quantized, scale, zero)
        return (quantized.clamp(0, STEPS) - zero) * scale

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor | None, Tensor | None]:
        (gradient,) = gradients
        states, quantized, scale, zero = ctx.saved_tensors
        below, above = quantized < 0, quantized > STEPS
        inside = gradient.masked_fill(below | above, 0)
        if not ctx.needs_input_grad[1]:
            return inside, None, None
        # Gradient of the scale, (high - low) / 255: how far rounding moved a value, in steps.
        step = (inside * (quantized - zero - states / scale)).sum() / STEPS
        return inside, (gradient * below).sum() - step, (gradient * above).sum() + step


def round_states(
    states: Float[Tensor, "*shape"], low: Float[Tensor, ""], high: Float[Tensor, ""]
) -> Float[Tensor, "*shape"]:
    """Return `states` rounded to 256 quantized values from `low` to `high`, in fp32.

    States within the range receive the gradient of their rounded value, clipped ones none. `low` and `high` have LSQ+'s gradients (Bhalgat
    et al. 2020, arXiv:2004.09576, section 3.1: offset `low`, scale (high - low) / 255): clipped values move the end that clipped them,
    rounded ones the width.
    """
    return _Rounded.apply(states.float(), low, high)  # type: ignore[no-any-return]
