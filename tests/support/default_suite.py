"""What the default suite leaves to `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Parameters that are marked slow; of a test with several arguments each value is a tuple."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow) for value in values
    ]


def covering(rows: Iterable[Any], columns: Iterable[Any]) -> list[Any]:
    """Pairs of parameters: every row with the first column and the first row with every column; the others slow.

    A column may be a tuple of several arguments."""
    pairs = [
        (x, y, (row, *(column if isinstance(column, tuple) else (column,))))
        for x, row in enumerate(rows)
        for y, column in enumerate(columns)
    ]
    return [values if 0 in (x, y) else pytest.param(*values, marks=pytest.mark.slow) for x, y, values in pairs]
