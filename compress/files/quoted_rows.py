"""Read rows whose fields may be quoted."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence


class QuotedRows:
    """Iterates over rows as a strict `csv.reader` does, as lists of fields. Other than there, a field may also begin with spaces before its
    quote, unless tabs separate fields: `a, "b, c"` has two. `line_num`: lines read so far. Raises `csv.Error`."""

    def __init__(self, lines: Iterable[str], delimiter: str) -> None:
        self._delimiter, self._raw = delimiter, list[str]()  # the lines of the row that is read
        self._reader = csv.reader(self._collected(lines), delimiter=delimiter, strict=True)
        self._spaced = None if delimiter == "\t" else re.compile(rf'(^|{re.escape(delimiter)}) +"', re.MULTILINE)

    @property
    def line_num(self) -> int:
        return self._reader.line_num

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        self._raw.clear()
        fields = next(self._reader)
        if self._spaced is None or not any(map(self._spaced.search, self._raw)):
            return fields
        return self._without_spaces(fields)

    def _collected(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            self._raw.append(line)
            yield line

    def _without_spaces(self, fields: list[str]) -> list[str]:
        """Return the fields of the row as they are without spaces before quotes; `fields`, in which such quotes are text, if these are
        pairs within a field. Raises `csv.Error` for a lone one."""
        if not (spaced := _spaced_quotes(fields)):
            return fields
        try:
            rows = list(csv.reader(self._raw, delimiter=self._delimiter, strict=True, skipinitialspace=True))
        except csv.Error:
            rows = []
        if len(rows) == 1 and len(rows[0]) == len(fields):  # spaces before text without quotes are text
            return [plain if plain.lstrip(" ") == bare else bare for plain, bare in zip(fields, rows[0], strict=True)]
        if len(rows) == 1:
            return rows[0]
        if any(field.count('"') % 2 for field in spaced):
            raise csv.Error("a quote after a space begins a field that does not end on this line")
        return fields


def _spaced_quotes(fields: Sequence[str]) -> list[str]:
    return [field for field in fields if field.startswith(" ") and field.lstrip(" ").startswith('"')]
