"""Consoles for printed tables, lines of stdin, and stdout that takes no more. Imports nothing of the pipeline: reports need none of it."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import TYPE_CHECKING

from ..errors import CompressError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


_IN_ASCII = {"−": "-", "–": "-", "×": "x", "±": "+-", "→": "->", "…": "...", "“": '"', "”": '"', "─": "-"}


def console(*, stderr: bool = False) -> Console:
    """Return a rich console; it honours NO_COLOR and does not wrap tables when its output is not a terminal. Brackets and colons are
    printed literally, not as markup: paths, labels and settings may have them."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 160
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def headed_line(word: str, style: str, rest: str) -> Text:
    """Return a line that begins with a styled word."""
    from rich.text import Text

    return Text.assemble((word, style), rest)


def spell_out(error: UnicodeError) -> tuple[str, int]:
    """Return, for `codecs.register_error`, the characters that stdout's encoding lacks in a form that every encoding has: signs of tables
    as the nearest sign of ASCII, others as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text), error.end


def escape_in_json(error: UnicodeError) -> tuple[str, int]:
    """As `spell_out`, for a JSON document: in its texts, which read as they are."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def print_in_any_encoding(*, in_json: bool = False) -> None:
    """Let stdout take tables and notices, or a JSON document, in an encoding without some of their characters, such as Latin-1, which has
    no minus sign."""
    if isinstance(sys.stdout, TextIOWrapper) and "utf" not in sys.stdout.encoding.lower():
        handler = escape_in_json if in_json else spell_out
        codecs.register_error(handler.__name__, handler)
        sys.stdout.reconfigure(errors=handler.__name__)


def print_as_it_is() -> None:
    """Undo `print_in_any_encoding`, for answers that are data: what stdout cannot encode is refused, unless PYTHONIOENCODING says else."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == spell_out.__name__:
        sys.stdout.reconfigure(errors=os.environ.get("PYTHONIOENCODING", "").partition(":")[2] or "strict")


def check_streams(*, reads: bool, writes: bool) -> None:
    """Raise `CompressError` if stdin, which is read, or stdout, which is written, was closed by the process that started this one."""
    if reads and sys.stdin is None:
        raise CompressError("stdin is closed; give texts, or a file with --input")
    if writes and sys.stdout is None:
        raise CompressError("stdout is closed; open it, or write to a file with --input and --output")


def lines_of_stdin() -> Iterator[str]:
    """Yield the lines of stdin, with their ends. Each is decoded by itself, so that those before one that is no UTF-8 arrive; in the C
    locale, Python would accept invalid bytes. Raises `UnicodeDecodeError`."""
    if not isinstance(sys.stdin, TextIOWrapper):
        yield from sys.stdin
        return
    for number, line in enumerate(sys.stdin.buffer):
        yield line.decode("utf-8" if number else "utf-8-sig")


def leave_stdout() -> None:
    """Redirect stdout to null: its reader is gone or its disk takes no more, and the interpreter flushes once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
