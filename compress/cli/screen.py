"""Consoles for printed tables, lines of stdin, and stdout that takes no more. Imports nothing of the pipeline: reports need none of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import TYPE_CHECKING

from ..errors import CompressError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


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
