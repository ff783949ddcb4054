"""Compare the quantization errors of two settings on all tokens; a part of them is mostly enough."""

from __future__ import annotations

import numpy as np
import pytest

from compress.quantize import matmul_errors
from compress.quantize.matmul_errors import MatmulSample, interleave_rows
from compress.spec.quantization import Quantize

DRAWS = np.random.default_rng(4)
STATES = (DRAWS.normal(size=(2048, 16)) * 10 ** np.linspace(-1, 1, 16)).astype(np.float32)
SAMPLE = MatmulSample.of(STATES, [DRAWS.normal(size=(16, 8)).astype(np.float32) for _ in range(2)], Quantize())


def factors_of(power: float) -> np.ndarray:
    return (np.abs(STATES).max(0) ** power).astype(np.float32)


def errors(power: float) -> np.ndarray:
    return SAMPLE.errors(factors_of(power))


def smaller_errors(power: float, to_beat: np.ndarray) -> np.ndarray | None:
    return SAMPLE.smaller_errors(factors_of(power), to_beat=to_beat)


def test_the_error_is_that_of_both_operands_rounded() -> None:
    row_errors, expected = errors(0.5), np.zeros(len(STATES))
    factors = np.sqrt(np.abs(STATES).max(0))
    smoothed = SAMPLE.states / factors
    step = (smoothed.max() - smoothed.min()) / 255
    for exact in SAMPLE.matmuls:
        weight = factors[:, None] * exact.weight
        scale = np.abs(weight).max(0) / 127
        product = np.rint(smoothed / step) * step @ (np.rint(weight / scale) * scale)
        squares = (exact.output.astype(float) ** 2).sum(1)
        expected += ((product - exact.output) ** 2).sum(1) / (squares + np.median(squares))
    assert row_errors.sum() == pytest.approx(expected.sum(), rel=0.02)  # a value may round the other way


def test_what_is_no_better_is_left_and_what_is_better_is_finished() -> None:
    sums = {power: float(errors(power).sum()) for power in (0.0, 0.5, 0.9, 1.0)}
    for one in sums:
        for other in sums:
            row_errors = smaller_errors(other, to_beat=errors(one))
            assert (row_errors is None) == (sums[other] >= sums[one])
            assert row_errors is None or float(row_errors.sum()) == sums[other]


def test_clearly_worse_is_seen_on_few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few tokens suffice if the error is clearly larger, but not if the first tokens alone are worse by no more than chance."""
    seen: list[int] = []
    own = matmul_errors._is_larger
    monkeypatch.setattr(
        matmul_errors, "_is_larger", lambda so_far, least: (seen.append(len(so_far)), own(so_far, least))[1]
    )
    assert smaller_errors(0.0, to_beat=errors(0.9)) is None
    assert seen[-1] <= 512
    least = np.full(2048, 1.0)
    luck = least + DRAWS.normal(size=2048)
    luck[:256] += 2 / 16 - luck[:256].mean() + 1  # two standard errors of the first 256
    assert not own(luck[:256], least)
    luck[:256] += 6 / 16
    assert own(luck[:256], least)


def test_a_way_that_mends_the_few_tokens_that_err_most_is_not_left_before_they_come() -> None:
    least = np.full(2048, 0.01)
    least[[700, 1900]] = 20
    better = np.full(2048, 0.0101)
    assert better.sum() < least.sum()
    assert not any(matmul_errors._is_larger(better[:count], least) for count in range(128, 2049, 128))


def test_any_part_of_mixed_rows_has_short_texts_and_long_ones() -> None:
    rows = interleave_rows(np.arange(1000)[:, None])[:, 0]
    assert sorted(rows) == list(range(1000))
    for first in range(0, 896, 128):
        assert abs(rows[first : first + 125].mean() - 499.5) < 8
