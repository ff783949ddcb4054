"""Check all rows of a file before the first is answered."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import CompressError, brief
from ...files.merged_rows import may_hold_rows, merged_row
from .rows import Row, Rows, TableRows

_SHOWN = 3  # different problems in a message


def check_rows(rows: Rows | TableRows, check: Callable[[Row], object]) -> None:
    """Pass every row to `check`. Raises `CompressError` with the first few different problems that `check` raised for single rows and the
    number of rows that have any; for rows that two lone quotes made one; and as reading `rows` does."""
    problems = _Problems()
    suspected = False  # whether some row may hold several
    try:
        for row in rows:
            if rows.delimiter and rows.quoting:
                suspected = suspected or may_hold_rows(list(row.values.values()), rows.delimiter)
            try:
                check(row)
            except CompressError as error:
                problems.add(row, error)
    except CompressError:
        problems.refuse()  # they come before what cannot be read
        raise
    if suspected:
        _refuse_merged_rows(rows)
    problems.refuse()


class _Problems:
    """Problems of rows. `count`: how many rows have one."""

    def __init__(self) -> None:
        self._row_of: dict[str, Row] = {}  # problem -> the first row that has it
        self._count = 0

    def add(self, row: Row, error: CompressError) -> None:
        """Store the row's problem; raise one that is not the row's alone, such as that a column is missing."""
        place = f"{row.place}: "
        if not str(error).startswith(place):
            self.refuse()
            raise error
        self._row_of.setdefault(str(error).removeprefix(place), row)
        self._count += 1

    def refuse(self) -> None:
        """Raise `CompressError` if there are problems."""
        if not self._row_of:
            return
        (problem, row), *others = list(self._row_of.items())[:_SHOWN]
        unit = _begin(row).split()[-1]
        message = f"{row.place}: {problem}"
        for problem, row in others:
            message += f"{' ' if message.endswith('?') else '; '}{unit} {row.number}: {problem}"
        if self._count > min(len(self._row_of), _SHOWN):
            message += f"{' ' if message.endswith('?') else '; '}{self._count:,} such {unit}s in all"
        raise CompressError(message)


def _refuse_merged_rows(rows: Rows | TableRows) -> None:
    """Raise `CompressError` if a row holds several. Reads all rows again, into memory."""
    again = list(rows)
    columns = list(zip(*(row.values.values() for row in again), strict=True))
    if (merged := merged_row(columns, rows.delimiter)) is not None:
        index, line = merged
        row, lines = again[index], sum(column[index].count("\n") for column in columns)
        raise CompressError(
            f"{_begin(row)}{int(row.number) - lines}: a quoted field spans several lines that look like rows, such as {brief(line)}; give "
            "--no-quoting if quotes are text; if they are lines of one text, save the file as .jsonl"
        )


def _begin(row: Row) -> str:
    """Return the row's place without its number, such as `in.csv: line `."""
    return row.place.removesuffix(str(row.number))
