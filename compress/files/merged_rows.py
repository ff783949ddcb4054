"""Find rows of a delimited file that became one, between a lone quote that begins a field and a later one that ends a field."""

from __future__ import annotations

from collections.abc import Sequence

from .tabular import is_number

_FEWEST = 2  # lines of a field with a value that the file has elsewhere: a text may end in `,a` by chance


def may_hold_rows(row: Sequence[str], delimiter: str) -> bool:
    """Whether one field of the row has several lines with as many fields as a row, so that `merged_row` may find it."""
    return any("\n" in field for field in row) and len(_lines(row, delimiter)) > 0


def merged_row(columns: Sequence[Sequence[str]], delimiter: str) -> tuple[int, str] | None:
    """Return (the index of a row that holds several, one of the lines that are in it); None if no row does.

    A quoted text may have several lines. These are rows if each has as many fields as a row, and in several of them a field is what rows
    of one line repeat in its column, such as a label, or a number in a column of numbers.
    """
    several = {index for column in columns for index, field in enumerate(column) if "\n" in field}
    if not several or len(columns) < 2:
        return None
    single = [[field for index, field in enumerate(column) if index not in several] for column in columns]
    repeated = [set(column) if len(set(column)) < len(column) else set() for column in single]
    numeric = [len(column) > 0 and all(map(is_number, column)) for column in single]

    def is_known(at: int, field: str) -> bool:
        if field != field.strip() or not field:  # as after the commas of a sentence
            return False
        return field in repeated[at] if repeated[at] else numeric[at] and is_number(field)

    for index in sorted(several):
        lines = _lines([column[index] for column in columns], delimiter)
        known = [line for line in lines if any(is_known(at, field) for at, field in line.items())]
        if len(known) >= _FEWEST:
            return index, delimiter.join(max(known, key=len).values())
    return None


def _lines(row: Sequence[str], delimiter: str) -> list[dict[int, str]]:
    """Return for each line of the one field of `row` that has several, if these can be rows, its fields by column, without those that
    are at the field's ends and may be parts; else no lines."""
    own = [at for at, field in enumerate(row) if "\n" in field]
    if len(own) > 1:
        return []
    at, width = own[0], len(row)
    parts = [line.removesuffix("\r").split(delimiter) for line in row[at].split("\n") if line.strip()]
    if len(parts) < 2 or [len(part) for part in parts] != [width - at, *[width] * (len(parts) - 2), at + 1]:
        return []
    first, *middle, last = parts
    lines = [dict(enumerate(first, at)), *(dict(enumerate(part)) for part in middle), dict(enumerate(last))]
    lines[0].pop(at)  # the text that begins with the quote
    lines[-1].pop(at)  # the one that ends with the other
    return lines
