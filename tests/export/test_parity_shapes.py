"""Shapes on which graphs are compared with PyTorch: enough to reveal a hard-coded size, and no more."""

from __future__ import annotations

import pytest

from compress.export.parity import shapes


@pytest.mark.parametrize("max_length", [1, 2, 24, 128, 200, 512, 514, 1024, 1025, 8192])
def test_a_batch_is_as_long_as_texts_may_be_and_no_larger_than_it_must_be(max_length: int) -> None:
    batch_shapes = shapes(max_length)
    (rows, longest), short = batch_shapes[-1], batch_shapes[:-1]
    assert longest == min(max_length, 2048)
    assert rows * longest <= max(1024, 2 * longest)
    assert rows > 1 or max_length > 1024  # so that one row is padded
    assert all(rows * length <= 57 for rows, length in short)
    assert len({rows for rows, _ in batch_shapes}) > 1
    assert len({length for _, length in batch_shapes}) > 1 or max_length == 1
