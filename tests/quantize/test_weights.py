"""Tables as int8: how precise they are, and what their scales and their centre are for."""

from __future__ import annotations

import numpy as np
import pytest

from compress.quantize import weights
from compress.quantize.ranges import Range
from compress.quantize.weights import Rows, quantize_rows, to_int8


def restored(rows: Rows) -> np.ndarray:
    scales = rows.scales.astype(np.float64)
    scales = scales if rows.unit is None else scales**2 * float(np.asarray(rows.unit))
    return rows.values * scales[:, None] + (0 if rows.centre is None else rows.centre)


def test_what_all_rows_have_in_common_is_not_rounded() -> None:
    generator = np.random.default_rng(1)
    table = (0.03 * generator.normal(size=(512, 24))).astype(np.float32)
    table[:, 5] += 0.4  # as in positions with the segment's row added
    int8_rows = quantize_rows(table)
    assert int8_rows.unit is None
    off = np.abs(restored(int8_rows) - table)
    assert (off <= int8_rows.scales[:, None] * 0.501).all()
    levels, scales = to_int8(table, 0)
    plain = np.abs(levels * scales[:, None] - table)
    assert off.mean() < plain.mean() / 3


@pytest.mark.parametrize("loudest", [1.0, 300.0])
def test_the_scales_of_a_long_table_are_coded(loudest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "LONG", 100)
    generator = np.random.default_rng(2)
    table = (generator.normal(size=(400, 24)) * generator.uniform(0.5, 2, (400, 1))).astype(np.float32)
    table[7] *= loudest
    table[9] = 0
    int8_rows = quantize_rows(table)
    assert int8_rows.centre is None
    assert int8_rows.scales.dtype == np.uint8
    assert (int8_rows.values[9] == 0).all()
    exact = np.abs(table).max(1) / 127
    scales = int8_rows.scales.astype(np.float64) ** 2 * float(np.asarray(int8_rows.unit))
    rows = np.arange(400) != 9
    assert (scales[rows] >= exact[rows] * (1 - 1e-6)).all()  # rounded up, so nothing is clipped
    # The next code is (1 + 1 / code)² of the scale.
    assert (scales[rows] <= exact[rows] * (1 + 1 / (int8_rows.scales[rows] - 1.0)) ** 2 * (1 + 1e-6)).all()
    assert np.median(scales[rows] / exact[rows]) < (1.02 if loudest == 1 else 1.15)
    assert (np.abs(restored(int8_rows) - table) <= scales[:, None] * 0.501).all()


def test_a_table_of_zeros_is_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    for long in (10, 1000):
        monkeypatch.setattr(weights, "LONG", long)
        assert (restored(quantize_rows(np.zeros((20, 8), np.float32))) == 0).all()


def test_what_is_too_small_for_a_scale_is_zero() -> None:
    levels, scales = to_int8(np.array([[2e-43, 1.0], [-2e-43, 0.5]], np.float32), 1)  # 2e-43 / 127 is subnormal
    assert scales.tolist() == [1, pytest.approx(1 / 127)]
    assert levels.tolist() == [[0, 127], [0, 64]]
    scale, zero = Range(0, 1e-37).parameters()
    assert (scale, zero) == (1, 0)
