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


def keeping(values: Iterable[Any], kept: Iterable[Any]) -> list[Any]:
    """All values of one parameter: those in `kept` as they are, the others marked slow."""
    kept = set(kept)
    return [value if value in kept else pytest.param(value, marks=pytest.mark.slow) for value in values]


def covering(rows: Iterable[Any], columns: Iterable[Any], kept: Iterable[Any] | None = None) -> list[Any]:
    """Pairs of parameters: every row with the first column and the first row with every column; the others slow.

    A column may be a tuple of several arguments. With `kept`, only these rows and the first are taken by the first column."""
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
