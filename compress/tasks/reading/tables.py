"""Columns of a file with their line numbers; JSONL and Parquet. Delimited text is in `delimited`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import CompressError, brief, nearest
from ...files.regular import check_regular
from ...files.tabular import CONLL, DELIMITERS, json_line, list_names, not_utf8

SHOWN = 3  # wrong lines shown in a message


@dataclass(frozen=True)
class Table:
    """Columns of one file. `numbers`: per row, the number for messages, in `unit`s, with the row's name if it has one; `word_numbers`: for
    each word of a row, in files with a word per line; `partial`: columns that some rows lack, whose values are not kept but are all None,
    and for each row its own columns."""

    place: str
    unit: str
    numbers: Sequence[int | str]
    columns: dict[str, list[Any]]
    skipped: tuple[int, ...] = ()
    word_numbers: Sequence[Sequence[int]] | None = None
    partial: frozenset[str] = frozenset()
    row_columns: Sequence[Collection[str]] = ()

    def column(self, name: str) -> list[Any]:
        if name not in self.columns:
            near = nearest(name, list(self.columns))
            raise CompressError(f"{self.place}: no column {name!r}{near}; it has {list_names(self.columns)}")
        self.check_whole(name)
        return self.columns[name]

    def check_whole(self, name: str, remedy: str = "") -> None:
        """Raise `CompressError`, with the rows, if some lack this column."""
        if name in self.partial:
            rows = zip(self.numbers, self.row_columns, strict=True)
            problems = [(n, f"no key {name!r}; found {list(keys)}") for n, keys in rows if name not in keys]
            refuse(self.place, self.unit, problems, remedy)


def label_values(table: Table, label: str | tuple[str, ...]) -> list[Any]:
    """Return for each row the value of the column, or a tuple of those of several columns."""
    if isinstance(label, str):
        return table.column(label)
    return list(zip(*map(table.column, label), strict=True))


def refuse(place: str, unit: str, problems: Sequence[tuple[int | str, str]], remedy: str = "") -> None:
    """Raise `CompressError` for the first few `(number, problem)` pairs, with the total count and then the `remedy`; return if there are
    none."""
    if not problems:
        return
    shown = "; ".join(f"{unit} {number}: {problem}" for number, problem in problems[:SHOWN])
    rest = f"; {len(problems):,} such {unit}s in all" if len(problems) > SHOWN else ""
    raise CompressError(f"{place}: {shown}{rest}{remedy}")


def format_count(count: int, one: str, many: str = "") -> str:
    """Return `1 text` or `2 texts`; `many`: a plural that does not end in s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def all_have(count: int, unit: str) -> str:
    """Return `all 20 texts have`, the start of a message about something in common."""
    return f"all {count:,} {unit}s have" if count > 1 else f"the only {unit} has"


def no_examples(place: str) -> CompressError:
    """Return the error for a file or another source without an example."""
    forms = {**dict.fromkeys(DELIMITERS, "row after the header"), **dict.fromkeys(CONLL, "text")}
    return CompressError(f"{place}: no examples; expected at least one {forms.get(Path(place).suffix.lower(), 'row')}")


def read_text(path: Path) -> str:
    """Return the file as UTF-8 without a byte order mark. The lines of a file without a line feed may end in CR alone, as on old Macs."""
    raw = read_bytes(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(str(path), error) from None
    return text if "\n" in text else text.replace("\r", "\n")


def read_bytes(path: Path) -> bytes:
    check_regular(path, "a file of examples")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CompressError(f"{path}: no such file") from None
    except OSError as error:
        raise CompressError(f"{path}: cannot be read: {error.strerror}") from None


def lines_of(text: str) -> list[str]:
    """Return lines split at \\n alone (a text may contain other line separators), without blank lines at the end."""
    lines = text.split("\n")
    while lines and not lines[-1].strip("\r"):
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_jsonl(path: Path) -> Table:
    numbers, documents, problems = [], [], []
    for number, line in enumerate(lines_of(read_text(path)), start=1):
        if not line.strip():
            continue
        try:
            document = json_line(line)
        except CompressError as error:
            problems.append((number, str(error)))
            continue
        if not isinstance(document, dict):
            problems.append((number, f"expected a JSON object, found {brief(document)}"))
        numbers.append(number)
        documents.append(document)
    refuse(str(path), "line", problems)
    counts = Counter(name for document in documents for name in document)  # in the order of their first rows
    partial = frozenset(name for name, count in counts.items() if count < len(documents))
    absent = [None] * len(documents)
    columns = {name: absent if name in partial else [document[name] for document in documents] for name in counts}
    return Table(str(path), "line", numbers, columns, partial=partial, row_columns=documents if partial else ())


def read_parquet(path: Path) -> Table:
    import pyarrow
    import pyarrow.parquet

    column = ""  # the one that is read
    try:
        content = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(read_bytes(path))).read()
        columns = {}
        for name in content.column_names:
            column = f"column {name!r}: "
            columns[name] = content.column(name).to_pylist()
    except (pyarrow.ArrowException, OSError, KeyError, OverflowError, ValueError) as error:
        # a duplicate name; a date beyond Python's range; bytes that are not text
        remedy = "; leave it out, or write it in another type" if column else ""
        reason = str(error.args[0] if isinstance(error, KeyError) else error).splitlines()[0].rstrip(".")
        raise CompressError(f"{path}: cannot be read as Parquet: {column}{reason}{remedy}") from None
    return Table(str(path), "row", range(1, content.num_rows + 1), columns)
