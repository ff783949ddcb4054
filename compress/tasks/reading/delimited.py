"""Read a data file of any format; CSV and TSV, quoted or unquoted, are implemented here."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...errors import CompressError, brief
from ...files.merged_rows import merged_row
from ...files.quoted_rows import QuotedRows
from ...files.tabular import CONLL, DELIMITERS, csv_fault, delimiter_at, is_header, repeated_name
from .conll import read_conll
from .squad import read_squad
from .tables import Table, lines_of, read_jsonl, read_parquet, read_text, refuse

_QUOTES_ARE_TEXT = "set `quoting: false` under `files` of a task file if quotes are text"


def read_table(
    path: Path,
    *,
    header: bool = True,
    names: Sequence[str] | None = None,
    quoting: bool = True,
    skip_ragged: int = 0,
) -> Table:
    """Return the file at `path` in the format of its suffix. Blank lines are not rows.

    `names` replaces the header's names (or a missing header). Up to `skip_ragged` rows with another number of fields than the header are
    left out and listed in `skipped`; more, or any by default, are an error.
    """
    suffix = path.suffix.lower()
    if suffix in DELIMITERS:
        split, text = _quoted_rows if quoting else _unquoted_rows, read_text(path)
        delimiter, is_named = delimiter_at(suffix, text, len(names) if names else None)
        if is_named:
            text = "\n" + text.partition("\n")[2]  # lines are counted as they were
        table = _columns(path, split(path, text, delimiter), header, names, skip_ragged)
        if quoting:
            _refuse_merged_rows(table, delimiter)
        return table
    if suffix in (".jsonl", ".ndjson"):
        return read_jsonl(path)
    if suffix == ".parquet":
        return read_parquet(path)
    if suffix == ".json":
        return read_squad(path)
    if suffix in CONLL:
        return read_conll(path, names)
    raise CompressError(
        f"{path}: expected a .csv, .tsv, .jsonl or .parquet file, SQuAD's .json or a file of one word per "
        f"line ({', '.join(CONLL)}), found suffix {suffix!r}"
    )


def _unquoted_rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines_of(text), start=1):
        yield number, line.split(delimiter) if line else []


def _quoted_rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield rows with the line each starts on; a quoted field may contain newlines."""
    reader = QuotedRows(io.StringIO(text.rstrip("\r\n"), newline="\n"), delimiter)
    limit = csv.field_size_limit(sys.maxsize)  # the default, 128 KiB, is less than a long document
    start = 1
    try:
        for row in reader:
            if delimiter == "\t":
                _refuse_swallowed_rows(path, start, row)
            yield start, row
            start = reader.line_num + 1
    except csv.Error as error:
        raise CompressError(f"{path}:{start}: {csv_fault(error, f'check the quotes, or {_QUOTES_ARE_TEXT}')}") from None
    finally:
        csv.field_size_limit(limit)


def _refuse_swallowed_rows(path: Path, start: int, row: list[str]) -> None:
    """Reject a TSV field with both a tab and a newline: it starts with an unbalanced quote that is text, and includes the next rows."""
    if any("\t" in field and "\n" in field for field in row):
        raise CompressError(f"{path}:{start}: a quoted field spans several rows; {_QUOTES_ARE_TEXT}")


def _refuse_merged_rows(table: Table, delimiter: str) -> None:
    """Reject rows that two lone quotes made one."""
    merged = merged_row(list(table.columns.values()), delimiter)
    if merged is not None:
        index, line = merged
        raise CompressError(
            f"{table.place}:{table.numbers[index]}: a quoted field spans several lines that look like rows, such as {brief(line)}; "
            f"{_QUOTES_ARE_TEXT}; if they are lines of one text, save the file as .jsonl"
        )


def _columns(
    path: Path, rows: Iterator[tuple[int, list[str]]], header: bool, names: Sequence[str] | None, skip_ragged: int
) -> Table:
    line, first = next((record for record in rows if record[1]), (1, [])) if header else (1, [])
    expected = list(names) if names is not None else first
    if not expected:
        raise CompressError(
            f"{path}: empty file" if header else f"{path}: no header, so `columns` must name the columns"
        )
    if header and len(first) != len(expected):
        raise CompressError(f"{path}:{line}: `columns` names {len(expected)} columns, the file has {len(first)}")
    if problem := repeated_name(expected):
        remedy = "" if names is not None else ", or name them all with `columns` under `files` of a task file"
        raise CompressError(f"{path}:{line}: {problem}{remedy}")
    numbers, good, ragged = [], [], []
    for number, row in rows:
        if not header and not good and is_header(row, expected):
            raise CompressError(
                f"{path}:{number}: has the names in `columns`: it is a header, so leave `header: false` out; "
                "if it is an example, name the columns otherwise"
            )
        if len(row) == len(expected):
            numbers.append(number)
            good.append(row)
        elif row or skip_ragged:  # in data known to have broken rows, a blank line is one
            ragged.append((number, f"expected {len(expected)} fields, found {len(row)}"))
    if len(ragged) > skip_ragged:
        refuse(str(path), "line", ragged)
    columns = (
        dict(zip(expected, map(list, zip(*good, strict=True)), strict=True)) if good else {n: [] for n in expected}
    )
    return Table(str(path), "line", numbers, columns, tuple(number for number, _ in ragged))
