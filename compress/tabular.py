"""What files of examples hold, read alike by tasks and by `predict`: which character parts columns, and labels as they are compared."""

from __future__ import annotations

import re
from typing import Any

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_OTHERS = (";", "\t")  # that a .csv may have: spreadsheets write the first where the comma is the decimal sign
_QUOTED = re.compile(r'"[^"]*("|$)')  # a field over several lines is closed below the first


def delimiter_of(suffix: str, first: str, columns: int | None = None) -> str:
    """Of a file with this suffix and this first line: that of the suffix, or of a .csv another one, where it alone parts the
    line, into `columns` where their number is known."""
    usual = DELIMITERS[suffix]
    bare = _QUOTED.sub("", first)

    def fits(mark: str) -> bool:
        parts = bare.count(mark) + 1
        return parts > 1 if columns is None else parts == columns

    if suffix != ".csv" or fits(usual):
        return usual
    return next((mark for mark in _OTHERS if fits(mark)), usual)


def label_text(value: Any) -> str:
    """How a label is compared: its text; whole floats as integers (Parquet turns 1 into 1.0 beside a null)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
