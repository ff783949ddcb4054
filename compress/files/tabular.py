"""What files of examples contain, read alike by tasks and by `predict`: the delimiter of columns, and labels in comparable
form."""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections.abc import Collection, Container, Sequence
from typing import Any

from ..errors import CompressError, brief

CONLL = (".conll", ".conllu", ".bio", ".iob", ".iob2", ".txt")  # suffixes of files with one word per line
WORDS = "tokens"  # the name of their first column
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL_MARKS = ("|", ";", ",")  # between the labels of a list that is written as text
_MOST_NAMES = 20  # names of columns in a message
_OTHERS = (";", "\t")  # other delimiters of a .csv: spreadsheets write the first where the comma is the decimal sign
NO_COMMA = re.compile(r"""['"]\s+['"]""")  # between the texts of a list without commas, as NumPy writes it
_NAMED = re.compile(r"""("?)sep=([,;|\t])\1\r?""", re.IGNORECASE)  # a first line for Excel
_QUOTED = re.compile(r'"[^"]*("|$)')  # a quoted field; one over several lines is closed after the first line


def delimiter_of(suffix: str, first: str, columns: int | None = None) -> str:
    """Return the delimiter of a file with this suffix and first line: the suffix's own, or for a .csv another one, if only
    that splits the line, into `columns` if their number is known. No other one fits a single column: any that is absent would."""
    usual = DELIMITERS[suffix]
    unquoted = _QUOTED.sub("", first)

    def fits(mark: str) -> bool:
        parts = unquoted.count(mark) + 1
        return parts > 1 if columns is None else parts == columns

    if suffix != ".csv" or columns == 1 or fits(usual):
        return usual
    return next((mark for mark in _OTHERS if fits(mark)), usual)


def delimiter_at(suffix: str, begin: str, columns: int | None = None) -> tuple[str, bool]:
    """Return the delimiter of a file with this suffix that begins so, and whether its first line names it for Excel, as `sep=;` does in a
    .csv, and has no columns. `columns`: as of `delimiter_of`."""
    match = _NAMED.fullmatch(begin.partition("\n")[0]) if suffix == ".csv" else None
    if match:
        return match[2], True
    return delimiter_of(suffix, begin.lstrip("\r\n").partition("\n")[0], columns), False


def is_header(fields: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a row has the `names` that the user gives the columns, in any case and order, so that it is no example."""
    one, other = (sorted(name.strip().casefold() for name in row) for row in (fields, names))
    return one == other


def list_names(names: Collection[str], most: int = _MOST_NAMES) -> str:
    """Return names of columns or labels for a message: at most so many, each cut to a readable length, and how many more there are."""
    shown = ", ".join(brief(name) for name in list(names)[:most])
    more = len(names) - most
    return (shown or "none") + (f" and {more:,} more" if more > 0 else "")


def repeated_name(names: Sequence[str]) -> str | None:
    """Return what is wrong with a header in which two columns have one name, or none, as spreadsheets write empty columns; None: no two
    do."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is None:
        return None
    return (
        f"two columns are named {twice!r}; rename one"
        if twice
        else "two columns have no name; delete them, or name each"
    )


def not_utf8(
    place: str, error: UnicodeDecodeError, before: int = 0, remedy: str = "save the file as UTF-8"
) -> CompressError:
    """Return the exception for the `error` of bytes that come after `before` lines of the place."""
    line, byte = before + error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
    return CompressError(f"{place}:{line}: expected UTF-8 text, found byte 0x{byte:02x}; {remedy}")


def json_line(line: str) -> Any:
    """Return the value in a line of a .jsonl file. Raises `CompressError`, without the place, if it is no JSON, an object in it has a key
    twice, or a number is too large for a float."""
    try:
        return _LINES.decode(line)
    except (ValueError, RecursionError) as error:  # json.JSONDecodeError, or a number of too many digits
        raise CompressError(f"not JSON: {error}") from None


def csv_fault(error: csv.Error, remedy: str) -> str:
    """Return what is wrong with a row, and what to do: `remedy` for a fault of its quotes."""
    if "new-line character" in str(error):  # Python's words are for those who open files in Python
        return "a carriage return is in a field without quotes, or ends a line; quote the field, or end lines with LF or CR LF"
    return f"{error}; {remedy}"


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise CompressError(f"two keys are named {twice!r}; rename one")
    return values


_SHOWN_DIGITS = 40  # of a number that is too large


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    shown = text if len(text) <= _SHOWN_DIGITS else f"{text[:_SHOWN_DIGITS]}…"
    raise CompressError(f"the number {shown} is too large; write it as a text")


def _whole(text: str) -> int:
    if len(text) > _SHOWN_DIGITS:
        _finite(text)
    return int(text)


# Made once: making it takes longer than a line.
_LINES = json.JSONDecoder(object_pairs_hook=_object_of, parse_float=_finite, parse_int=_whole)


def label_list(value: Any) -> list[str] | None:
    """Return the labels of a list, or of a text: a JSON list or Python's form of one, else parts between `|`, between `;` if
    it has none, or between `,`. An empty text is an empty list; None: not a list of texts or finite numbers, or one with an
    empty label."""
    if isinstance(value, str):
        value = _parse_value(value.strip())
    if not isinstance(value, list | tuple) or not all(map(_is_name, value)):
        return None
    names = [label_text(part) for part in value]
    return names if all(names) else None


def are_label_lists(values: Sequence[Any]) -> bool:
    """Whether texts, one for each example, are lists of labels rather than single ones. They are JSON lists; or names
    separated by `|`, fewer of them than different texts, not equally many in each, as they would be if a class had several
    parts, and in no two texts the same in another order."""
    texts = {value.strip() for value in values if isinstance(value, str)} - {""}
    lists = [names for text in texts if (names := label_list(text)) is not None]
    if len(lists) < len(texts) or not texts:
        return False
    if all(text.startswith("[") for text in texts):
        return True
    marked, sets = any(LABEL_MARKS[0] in text for text in texts), set(map(frozenset, lists))
    return marked and len(set(map(len, lists))) > 1 and len(frozenset().union(*sets)) < len(texts) == len(sets)


def label_columns(name: str, columns: Container[str]) -> tuple[str, ...]:
    """Return the columns that `name` names: itself, or, if that is none of `columns` and has commas, the parts between them."""
    parts = tuple(part.strip() for part in name.split(","))
    return (name,) if name in columns or len(parts) == 1 else parts


def flag(value: Any) -> bool | None:
    """Parse a value that says whether a text has a label; None: neither 0 nor 1, also written 0.0 and 1.0, false nor true."""
    return {"0": False, "1": True, "false": False, "true": True}.get(label_text(value).lower().removesuffix(".0"))


def is_vector(names: Sequence[str]) -> bool:
    """Whether a list says yes or no to each label in turn, one of the two more than once; labels that are called 0 and 1 are there
    once."""
    flags = list(map(flag, names))
    return None not in flags and len(set(names)) < len(names)


def _is_name(part: Any) -> bool:
    return isinstance(part, str | int) or (isinstance(part, float) and math.isfinite(part))


def _parse_value(text: str) -> Any:
    if text.startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return _python_list(text)
    mark = next((mark for mark in LABEL_MARKS if mark in text), None)
    return ([text] if text else []) if mark is None else text.split(mark)


def _python_list(text: str) -> Any:
    """Return a list written as Python writes it; None: not one, or one without commas, whose texts Python would join."""
    try:
        return None if NO_COMMA.search(text) else ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def is_number(text: str) -> bool:
    """Whether the text is a finite number, with a decimal point if any."""
    try:
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False


def label_text(value: Any) -> str:
    """Return a label's text for comparison; whole floats become integers (Parquet turns 1 into 1.0 beside a null)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
