"""Rows of .csv, .tsv, .jsonl and .txt files, read and written one at a time."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ...errors import CompressError, nearest
from ...files.quoted_rows import QuotedRows
from ...files.tabular import (
    DELIMITERS,
    csv_fault,
    delimiter_at,
    is_header,
    json_line,
    list_names,
    not_utf8,
    repeated_name,
)

if TYPE_CHECKING:
    from ...tasks.reading.tables import Table

_SUFFIXES = (*DELIMITERS, ".jsonl")
PLAIN = ".txt"  # one text per line
MARK = "\ufeff"  # the byte order mark by which spreadsheets recognize UTF-8


class Row(NamedTuple):
    """A row. `place` for messages: `in.csv: line 3`; `header`: where its columns are named, the file for all rows or, in JSON, that line;
    `number`: of that line, `word_numbers`: of those of its words, if each has one."""

    place: str
    values: dict[str, Any]
    header: str
    number: int | str
    word_numbers: Sequence[int] | None = None


class Rows:
    """Reads the rows of a file in the format of `suffix`, one at a time; a line of a .txt file is a row with the one column `text`. `line`
    is the end of the last row, `delimiter` separates columns, and `marked` is whether the file begins with `MARK`. For .csv and .tsv files:
    `quoting`: whether quotes hold fields together; `columns`: their names, if the first line does not have them."""

    def __init__(self, path: Path, suffix: str, *, quoting: bool = True, columns: Sequence[str] | None = None) -> None:
        check_form(path, suffix, quoting=quoting, columns=columns)
        self.quoting, self._columns = quoting, columns
        self.path, self.suffix, self.line = path, suffix, 0
        try:
            self.file: IO[str] = path.open(encoding="utf-8-sig", newline="" if self.suffix in DELIMITERS else "\n")
            self.size = os.fstat(self.file.fileno()).st_size
            begin = self.file.buffer.peek(1).decode("utf-8", "replace")  # type: ignore[attr-defined]
            self.marked = begin.startswith(MARK)
            if "\n" not in begin and "\r" in begin:  # lines that end in CR alone, as on old Macs
                begin = begin.replace("\r", "\n")
                self.file.reconfigure(newline="" if self.suffix in DELIMITERS else None)  # type: ignore[attr-defined]
            begin = begin.removeprefix(MARK)
        except OSError as error:
            raise CompressError(f"{path}: cannot be read: {error.strerror}") from None
        self.delimiter, self._is_named = "", False
        if self.suffix in DELIMITERS:
            self.delimiter, self._is_named = delimiter_at(self.suffix, begin, len(columns) if columns else None)

    @property
    def done(self) -> int:
        """Bytes read, out of `size`."""
        return self.file.buffer.tell()  # type: ignore[attr-defined]

    @property
    def repeatable(self) -> bool:
        """Whether the rows can be read several times: not from a pipe."""
        return self.path.is_file()

    def close(self) -> None:
        self.file.close()

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows from the first on; of a file that is not `repeatable`, once."""
        try:
            self.line = 0
            if self.repeatable:
                self.file.seek(0)
            yield from (
                self._delimited_rows()
                if self.delimiter
                else self._plain_rows()
                if self.suffix == PLAIN
                else self._json()
            )
        except UnicodeDecodeError as error:
            raise self._not_utf8(error) from None
        except csv.Error as error:
            fault = csv_fault(error, "check the quotes, or give --no-quoting if they are text")
            raise CompressError(f"{self.path}:{self.line + 1}: {fault}") from None

    def _not_utf8(self, error: UnicodeDecodeError) -> CompressError:
        """Return the error. The file was decoded in blocks of many lines, so it is read again to find the line, unless it can be read only
        once."""
        if self.path.is_file():
            with self.path.open("rb") as file:
                for before, line in enumerate(file):
                    try:
                        line.decode()
                    except UnicodeDecodeError as line_error:
                        return not_utf8(str(self.path), line_error, before)
        return not_utf8(str(self.path), error, self.line)

    def _delimited_rows(self) -> Iterator[Row]:
        csv.field_size_limit(sys.maxsize)
        lines: Iterator[str] = self.file
        if self._is_named:
            next(lines)
            lines = chain(["\n"], lines)  # lines are counted as they were
        reader = (
            QuotedRows(lines, self.delimiter)
            if self.quoting
            else csv.reader(lines, delimiter=self.delimiter, strict=True, quoting=csv.QUOTE_NONE)
        )
        header = next(filter(None, reader), None) if self._columns is None else list(self._columns)
        if not header:
            raise CompressError(f"{self.path}: empty file")
        if problem := repeated_name(header):
            where = f"{self.path}: line {reader.line_num}" if self._columns is None else "--columns"
            raise CompressError(f"{where}: {problem}")
        self.line = reader.line_num
        for fields in reader:
            if not fields:
                continue
            if self._columns is not None and not self.line and is_header(fields, header):
                raise CompressError(
                    f"{self.path}: line {reader.line_num}: has the names of --columns; leave --columns out"
                )
            self.line = reader.line_num
            row = Row(self._place, dict(zip(header, fields, strict=False)), str(self.path), self.line)
            if len(fields) != len(header):
                raise CompressError(f"{row.place}: expected {len(header)} fields, found {len(fields)}")
            if self.delimiter == "\t" and any("\t" in field and "\n" in field for field in fields):
                raise CompressError(f"{row.place}: a quoted field spans several rows; double the quotes that are text")
            yield row

    @property
    def _place(self) -> str:
        return f"{self.path}: line {self.line}"

    def _json(self) -> Iterator[Row]:
        for number, line in enumerate(self.file, 1):
            if not line.strip():
                continue
            self.line = number
            try:
                values = json_line(line)
            except CompressError as error:
                raise CompressError(f"{self._place}: {error}") from None
            if not isinstance(values, dict):
                raise CompressError(f"{self._place}: expected a JSON object")
            yield Row(self._place, values, self._place, number)

    def _plain_rows(self) -> Iterator[Row]:
        for number, line in enumerate(self.file, 1):
            self.line = number
            yield Row(self._place, {"text": line.rstrip("\r\n")}, str(self.path), number)


def check_form(path: Path, suffix: str, *, quoting: bool, columns: Sequence[str] | None) -> None:
    """Raise `CompressError` for options of .csv and .tsv files if `path` is another file."""
    if suffix not in DELIMITERS and (columns or not quoting):
        option = "--columns" if columns else "--no-quoting"
        raise CompressError(f"{option}: is for .csv and .tsv files; leave it out for {path.name}")


class TableRows:
    """The rows of a table that was read at once, with the interface of `Rows`. `suffix`: the format in which they are written, if no other
    is named. `size` and `done` are in rows."""

    delimiter, marked, quoting, repeatable = "", False, True, True

    def __init__(self, table: Table, suffix: str) -> None:
        self._table, self.suffix, self.size, self.done = table, suffix, len(table.numbers), 0

    def __iter__(self) -> Iterator[Row]:
        table = self._table
        for index, number in enumerate(table.numbers):
            values = {name: column[index] for name, column in table.columns.items()}
            words = table.word_numbers[index] if table.word_numbers is not None else None
            self.done = index + 1
            yield Row(f"{table.place}: {table.unit} {number}", values, table.place, number, words)

    def close(self) -> None:
        """Do nothing: no file is open."""


def value_of(row: Row, name: str, option: str) -> Any:
    """Return a row's value. CompressError: the row has no column `name`, which `option` names."""
    if name not in row.values:
        near = nearest(name, list(row.values)) or ";"
        raise CompressError(
            f"{row.header}: no column {name!r}{near} name one of {list_names(row.values)} with {option}"
        )
    return row.values[name]


def suffix_of(path: Path, option: str, more: Sequence[str] = (), *, plain: str = "") -> str:
    """Return the suffix of the format in which the file is read or written. `more`: others that it may have; `plain`: what to do with a
    .txt file, if that is none of these."""
    suffix, known = path.suffix.lower().replace(".ndjson", ".jsonl"), (*_SUFFIXES, *more)
    if suffix not in known:
        advice = f"; {plain}" if plain and suffix == PLAIN else ""
        expected = f"{', '.join(known[:-1])} or {known[-1]}"
        raise CompressError(f"{option}: expected a {expected} file, found {path.name or f'the folder {path}'}{advice}")
    return suffix


@contextmanager
def check_encodable(row: Row) -> Iterator[None]:
    """Raise `CompressError` if the file that the row is written to cannot encode its characters."""
    try:
        yield
    except UnicodeEncodeError as error:
        character = error.object[error.start].encode("ascii", "backslashreplace").decode()
        raise CompressError(
            f"{row.place}: expected text that can be written in {error.encoding}, found {character}"
        ) from None


class _UnixLines:
    """`file`, with rows that end in a newline alone."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, row: str) -> None:
        self._file.write(row.removesuffix("\r\n") + "\n")


def _json_text(row: Row) -> str:
    try:
        return json.dumps(row.values, ensure_ascii=False, allow_nan=False)
    except ValueError as error:
        raise CompressError(f"{row.place}: {error}, as `NaN` and `Infinity`; write the answers to a .csv") from None


class Writer:
    """Writes rows to a file in the format of `suffix`, the header with the first; `delimiter`: another than the suffix's; `quoting`:
    whether quotes hold fields together."""

    def __init__(self, file: IO[str], suffix: str, delimiter: str = "", *, quoting: bool = True) -> None:
        self._file, self._suffix, self._quoting = file, suffix, quoting
        self._delimiter = delimiter or DELIMITERS.get(suffix, ",")
        self._header: list[str] = []
        # Its own terminator has both characters at which readers end a row: `csv` only quotes fields with a character of the terminator.
        self._csv = csv.writer(_UnixLines(file), delimiter=self._delimiter, lineterminator="\r\n")

    def write(self, row: Row) -> None:
        """Write a row. Raises `CompressError` for one that the format cannot represent."""
        with check_encodable(row):
            if self._suffix in DELIMITERS:
                self._write_fields(row)
            else:
                self._file.write(_json_text(row) + "\n")

    def _write_fields(self, row: Row) -> None:
        place, values = row.place, row.values
        if not self._header:
            self._header = list(values)
            self._write_cells(place, self._header)
        if odd := sorted(values.keys() ^ set(self._header)):
            raise CompressError(
                f"{place}: key {odd[0]!r} is not in every row, as a {self._suffix} file needs; give --output FILE.jsonl"
            )
        cells = (values[name] for name in self._header)
        self._write_cells(
            place, [cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) for cell in cells]
        )

    def _write_cells(self, place: str, cells: Sequence[str]) -> None:
        if self._quoting:
            self._csv.writerow(cells)
            return
        marks = (self._delimiter, "\n", "\r")
        if parted := next(
            (name for name, cell in zip(self._header, cells, strict=True) if any(map(cell.count, marks))), None
        ):
            raise CompressError(
                f"{place}: {parted!r} has a {self._delimiter!r} or a line end, which needs quotes; give --output "
                "FILE.jsonl"
            )
        self._file.write(self._delimiter.join(cells) + "\n")
