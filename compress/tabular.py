"""What files of examples hold, read alike by tasks and by `predict`: which character parts columns, and labels as they are compared."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Container, Sequence
from typing import Any

from .errors import CompressError

CONLL = (".conll", ".conllu", ".bio", ".iob", ".iob2", ".txt")  # suffixes of files of a word a line
WORDS = "tokens"  # what their first column is called
DELIMITERS = {".csv": ",", ".tsv": "\t"}
LABEL_MARKS = ("|", ";", ",")  # between the labels of a list that is written as text
_OTHERS = (";", "\t")  # that a .csv may have: spreadsheets write the first where the comma is the decimal sign
NO_COMMA = re.compile(r"""['"]\s+['"]""")  # between the texts of a list: NumPy writes none
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


def not_utf8(
    place: str, error: UnicodeDecodeError, before: int = 0, way_out: str = "save the file as UTF-8"
) -> CompressError:
    """What to raise for the `error` of bytes that `before` lines of the place precede."""
    line, byte = before + error.object.count(b"\n", 0, error.start) + 1, error.object[error.start]
    return CompressError(f"{place}:{line}: expected UTF-8 text, found byte 0x{byte:02x}; {way_out}")


def label_list(value: Any) -> list[str] | None:
    """Labels of a list, or of a text: a JSON list or Python's form of one, else parts between `|`, between `;` where it has none,
    or between `,`. An empty text is an empty list; None: no list of texts or finite numbers, or one with an empty label."""
    if isinstance(value, str):
        value = _parsed(value.strip())
    if not isinstance(value, list | tuple) or not all(map(_is_name, value)):
        return None
    names = [label_text(part) for part in value]
    return names if all(names) else None


def are_label_lists(values: Sequence[Any]) -> bool:
    """Whether texts, each of an example, are rather lists of labels: JSON lists; or names with `|` between, fewer of them than different
    texts, not equally many in each, as where a class has several parts, and in no two texts the same in another order."""
    texts = {value.strip() for value in values if isinstance(value, str)} - {""}
    found = [names for text in texts if (names := label_list(text)) is not None]
    if len(found) < len(texts) or not texts:
        return False
    if all(text.startswith("[") for text in texts):
        return True
    marked, sets = any(LABEL_MARKS[0] in text for text in texts), set(map(frozenset, found))
    return marked and len(set(map(len, found))) > 1 and len(frozenset().union(*sets)) < len(texts) == len(sets)


def label_columns(name: str, columns: Container[str]) -> tuple[str, ...]:
    """Those that `name` names: itself, or, where that is none of `columns` and has commas, the parts between them."""
    parts = tuple(part.strip() for part in name.split(","))
    return (name,) if name in columns or len(parts) == 1 else parts


def flag(value: Any) -> bool | None:
    """Of a column that says of each text whether it has a label; None: neither 0 nor 1, false nor true."""
    return {"0": False, "1": True, "false": False, "true": True}.get(label_text(value).lower())


def _is_name(part: Any) -> bool:
    return isinstance(part, str | int) or (isinstance(part, float) and math.isfinite(part))


def _parsed(text: str) -> Any:
    if text.startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return _pythons(text)
    mark = next((mark for mark in LABEL_MARKS if mark in text), None)
    return ([text] if text else []) if mark is None else text.split(mark)


def _pythons(text: str) -> Any:
    """A list as Python writes it; None: there is none, or one without commas, whose texts Python would join."""
    try:
        return None if NO_COMMA.search(text) else ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def label_text(value: Any) -> str:
    """How a label is compared: its text; whole floats as integers (Parquet turns 1 into 1.0 beside a null)."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()
