"""Read CSV, TSV, JSONL and Parquet files into columns that remember their line numbers."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compress.errors import CompressError, did_you_mean

DELIMITERS = {".csv": ",", ".tsv": "\t"}
SHOWN = 3  # offending lines shown in a message


@dataclass(frozen=True)
class Table:
    """Columns of one file. `numbers` holds, per row, the number a message should show, in `unit`s."""

    place: str
    unit: str
    numbers: Sequence[int]
    columns: dict[str, list[Any]]
    skipped: tuple[int, ...] = ()

    def column(self, name: str) -> list[Any]:
        if name not in self.columns:
            found = list(self.columns)
            raise CompressError(f"{self.place}: no column {name!r}{did_you_mean(name, found)}; found {found}")
        return self.columns[name]


def refuse(place: str, unit: str, problems: Sequence[tuple[int, str]]) -> None:
    """Raise for the first few `(number, problem)` pairs, with the count of all; return when there are none."""
    if not problems:
        return
    shown = "; ".join(f"{unit} {number}: {problem}" for number, problem in problems[:SHOWN])
    rest = f"; {len(problems):,} such {unit}s in all" if len(problems) > SHOWN else ""
    raise CompressError(f"{place}: {shown}{rest}")


def brief(value: Any) -> str:
    """`value` as a message shows it, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def read_text(path: Path) -> str:
    """The file as UTF-8 without a byte order mark."""
    raw = read_bytes(path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{raw[error.start]:02x}"
        raise CompressError(f"{path}:{line}: expected UTF-8 text, found {found}; save the file as UTF-8") from None


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CompressError(f"{path}: no such file") from None
    except OSError as error:
        raise CompressError(f"{path}: cannot be read: {error.strerror}") from None


def read_table(
    path: Path,
    *,
    header: bool = True,
    names: Sequence[str] | None = None,
    quoting: bool = True,
    skip_ragged: int = 0,
) -> Table:
    """The file at `path`; its suffix says what it is.

    `names` replaces the header's names (or stands in for a missing header). Up to `skip_ragged` rows with another
    number of fields than the header are left out and listed in `skipped`; more, or any by default, are an error.
    """
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        split = _quoted if quoting else _plain
        return _delimited(path, split(path, DELIMITERS[suffix]), header, names, skip_ragged)
    if suffix in (".jsonl", ".ndjson"):
        return _jsonl(path)
    if suffix == ".parquet":
        return _parquet(path)
    raise CompressError(f"{path}: expected a .csv, .tsv, .jsonl or .parquet file, found suffix {suffix!r}")


def lines_of(text: str) -> list[str]:
    """Lines split at \\n alone (a text may hold other line separators), blank lines at the end left out."""
    lines = text.split("\n")
    while lines and not lines[-1].strip("\r"):
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _plain(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        yield number, line.split(delimiter) if line else []


def _quoted(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line each starts on; a quoted field may hold newlines."""
    text = read_text(path).rstrip("\r\n")
    reader = csv.reader(io.StringIO(text, newline="\n"), delimiter=delimiter, strict=True)
    limit = csv.field_size_limit(sys.maxsize)  # the default, 128 KiB, is less than a long document
    start = 1
    try:
        for row in reader:
            if delimiter == "\t":
                _refuse_swallowed_rows(path, start, row)
            yield start, row
            start = reader.line_num + 1
    except csv.Error as error:
        raise CompressError(
            f"{path}:{start}: {error}; check the quotes, or set `quoting: false` if quotes are text"
        ) from None
    finally:
        csv.field_size_limit(limit)


def _refuse_swallowed_rows(path: Path, start: int, row: list[str]) -> None:
    """A TSV field with both a tab and a newline: an unbalanced quote that was text, and has eaten the next rows."""
    if any("\t" in field and "\n" in field for field in row):
        raise CompressError(f"{path}:{start}: a quoted field runs over rows; set `quoting: false` if quotes are text")


def _delimited(
    path: Path, rows: Iterator[tuple[int, list[str]]], header: bool, names: Sequence[str] | None, skip_ragged: int
) -> Table:
    first = next(rows, (1, []))[1] if header else []
    expected = list(names) if names is not None else first
    if not expected:
        raise CompressError(
            f"{path}: empty file" if header else f"{path}: no header, so `columns` must name the columns"
        )
    if header and len(first) != len(expected):
        raise CompressError(f"{path}:1: `columns` names {len(expected)} columns, the file has {len(first)}")
    if len(set(expected)) != len(expected):
        twice = next(name for name in expected if expected.count(name) > 1)
        raise CompressError(f"{path}:1: two columns are named {twice!r}; name them with `columns`")
    numbers, good, ragged = [], [], []
    for number, row in rows:
        if len(row) == len(expected):
            numbers.append(number)
            good.append(row)
        else:
            ragged.append((number, f"expected {len(expected)} fields, found {len(row)}"))
    if len(ragged) > skip_ragged:
        refuse(str(path), "line", ragged)
    columns = (
        dict(zip(expected, map(list, zip(*good, strict=True)), strict=True)) if good else {n: [] for n in expected}
    )
    return Table(str(path), "line", numbers, columns, tuple(number for number, _ in ragged))


def _jsonl(path: Path) -> Table:
    documents, problems = [], []
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        try:
            document = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            problems.append((number, f"not JSON: {error}"))
            continue
        if not isinstance(document, dict):
            problems.append((number, f"expected a JSON object, found {brief(document)}"))
        documents.append(document)
    refuse(str(path), "line", problems)
    names = list(documents[0]) if documents else []
    for number, document in enumerate(documents, start=1):
        missing = [name for name in names if name not in document]
        if missing:
            problems.append((number, f"no key {missing[0]!r}; found {list(document)}"))
    refuse(str(path), "line", problems)
    columns = {name: [document[name] for document in documents] for name in names}
    return Table(str(path), "line", range(1, len(documents) + 1), columns)


def _parquet(path: Path) -> Table:
    import pyarrow
    import pyarrow.parquet

    try:
        content = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(read_bytes(path))).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise CompressError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    columns = {name: content.column(name).to_pylist() for name in content.column_names}
    return Table(str(path), "row", range(1, content.num_rows + 1), columns)
