"""Mark parameters that are left to `make test-all`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Mark parameters as slow; if a test has several arguments, each value is a tuple."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow) for value in values
    ]


def keeping(values: Iterable[Any], kept: Iterable[Any]) -> list[Any]:
    """Return all values of one parameter, those not in `kept` marked slow."""
    kept = set(kept)
    return [value if value in kept else pytest.param(value, marks=pytest.mark.slow) for value in values]


def covering(rows: Iterable[Any], columns: Iterable[Any], kept: Iterable[Any] | None = None) -> list[Any]:
    """Return pairs of parameters, slow except every row with the first column and the first row with every column.

    A column may be a tuple of several arguments. With `kept`, only the first row and these are paired with the first column by
    default."""
    rows = list(rows)
    kept = rows if kept is None else [rows[0], *kept]
    pairs = [
        (x, y, (row, *(column if isinstance(column, tuple) else (column,))))
        for x, row in enumerate(rows)
        for y, column in enumerate(columns)
    ]
    return [
        values if x == 0 or (y == 0 and values[0] in kept) else pytest.param(*values, marks=pytest.mark.slow)
        for x, y, values in pairs
    ]
