"""The int8 roundings in torch: the exporter's values, and the papers' gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from compress.models.fake_quant.rounding import parameters, round_rows, round_states, round_weight
from compress.quantize import weights
from compress.quantize.ranges import Range
from compress.quantize.weights import quantize_rows, to_int8

torch.manual_seed(0)
WEIGHT = torch.randn(7, 12) * torch.linspace(0.1, 3, 7)[:, None]
WEIGHT[2] = 0
STATES = torch.randn(3, 5, 12) * 2 + 0.5
ENDS = [(-3.0, 4.0), (-0.17, 6.3), (0.0, 2.5), (-1.0, 0.0), (0.4, 3.0), (-2.0, -1.0), (0.0, 0.0)]


def number(value: float, *, learned: bool = False) -> Tensor:
    return torch.tensor(value, requires_grad=learned)


@pytest.mark.parametrize("bits", [7, 8])
@pytest.mark.parametrize("per_channel", [True, False])
def test_weights_are_what_the_exporter_stores(per_channel: bool, bits: int) -> None:
    levels, scale = to_int8(WEIGHT.numpy().T, 1 if per_channel else None, bits=bits)
    weight = round_weight(WEIGHT, per_channel=per_channel, bits=bits)
    np.testing.assert_allclose(weight.numpy(), (levels * scale).T, rtol=1e-6, atol=0)


@pytest.mark.parametrize("long", [1, 1000])
def test_rows_are_what_the_exporter_stores(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "LONG", long)
    stored = quantize_rows(WEIGHT.numpy())
    scales = stored.scales if stored.unit is None else stored.scales.astype(np.float32) ** 2 * stored.unit
    rows = stored.values * scales[:, None] + (0 if stored.centre is None else stored.centre)
    picked = [[0, 2, 6], [3, 3, 1]]
    vectors = round_rows(WEIGHT[torch.tensor(picked)], WEIGHT, coded=stored.unit is not None)
    assert (stored.unit is None) == (long == 1000)
    np.testing.assert_allclose(vectors.numpy(), rows[np.array(picked)], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("low", "high"), ENDS)
def test_states_are_what_the_range_of_a_file_gives(low: float, high: float) -> None:
    span = Range(low, high)
    scale, zero = parameters(number(low), number(high))
    assert (scale.item(), zero.item()) == tuple(map(float, span.parameters()))
    states = round_states(STATES, number(low), number(high))
    np.testing.assert_array_equal(states.numpy(), span.rounded(STATES.numpy()))


def test_what_is_a_level_stays_and_many_levels_change_little() -> None:
    levels = (torch.arange(256) - 51) * 0.25
    low, high = levels[0], levels[-1]
    torch.testing.assert_close(round_states(levels, low, high), levels, rtol=0, atol=0)
    grid = torch.arange(-127, 128)[None] * 0.03125
    torch.testing.assert_close(round_weight(grid, per_channel=True, bits=8), grid, rtol=1e-6, atol=0)
    fine = round_weight(WEIGHT, per_channel=True, bits=20)
    torch.testing.assert_close(fine, WEIGHT, rtol=0, atol=1e-5)


def test_gradients_pass_straight_through_and_stop_outside() -> None:
    states, weight = STATES.clone().requires_grad_(), WEIGHT.clone().requires_grad_()
    outgoing = torch.randn_like(STATES)
    round_states(states, number(-1.0), number(2.0)).backward(outgoing)
    step = 3 / 255  # values more than half a step beyond an end are clipped
    clear = (states - 0.5).abs() < 1.5 - step, (states - 0.5).abs() > 1.5 + step
    assert states.grad is not None
    torch.testing.assert_close(states.grad[clear[0]], outgoing[clear[0]], rtol=0, atol=0)
    assert not states.grad[clear[1]].any()
    assert clear[0].any()
    assert clear[1].any()
    round_weight(weight, per_channel=True, bits=8).sum().backward()
    assert weight.grad is not None
    assert (weight.grad == 1).all()


def lsq_plus(states: np.ndarray, low: float, high: float, rounding: np.ndarray) -> np.ndarray:
    """Bhalgat et al. 2020, equation 2, with beta = low; the rounding is a constant, as in the straight-through estimator."""
    scale = (high - low) / 255
    steps = (states - low) / scale
    cut = np.clip(steps, 0, 255)
    return (cut + np.where(cut == steps, rounding, 0)) * scale + low


def test_the_gradient_of_a_range_is_that_of_lsq_plus() -> None:
    scale = 1 / 32
    low, high = -40 * scale, 215 * scale  # zero is exactly representable, so both formulas agree
    generator = np.random.default_rng(0)
    states, outgoing = generator.normal(2, 4, 400).astype(np.float32).astype(float), generator.normal(size=400)
    # Within a rounding of an end the two formulas may differ.
    apart = np.abs(np.abs((states - low) / scale - 127.5) - 127.5) > 1
    states, outgoing = states[apart], outgoing[apart]
    assert len(states) > 350
    ends = [number(value, learned=True) for value in (low, high)]
    outputs = round_states(torch.tensor(states, dtype=torch.float32), *ends)
    outputs.backward(torch.tensor(outgoing, dtype=torch.float32))
    steps = (states - low) / scale
    rounding = np.rint(steps) - steps
    np.testing.assert_allclose(outputs.detach().numpy(), lsq_plus(states, low, high, rounding), atol=1e-5 + scale / 2)
    expected, tiny = [], 1e-6
    for end in range(2):
        moved = np.array([end == 0, end == 1]) * tiny
        up, down = (lsq_plus(states, low + sign * moved[0], high + sign * moved[1], rounding) for sign in (1, -1))
        slope = (up - down) / (2 * tiny)
        expected.append(float(outgoing @ slope))
    assert 0 < np.mean((states < low) | (states > high)) < 0.9
    assert [float(end.grad) for end in ends if end.grad is not None] == pytest.approx(expected, abs=0.02)
