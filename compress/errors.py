"""Errors that a user sees as one line, and the exit code each one means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# Limits of a message: the input that it repeats may be a whole file.
_WORD, _LINE, _LINES = 300, 2000, 50  # characters of a word, characters of a line, lines


class CompressError(Exception):
    """The user's input is wrong or cannot be used: what was expected, what was found, what to do.

    The command line prints the message without a traceback and exits with `exit_code`. Messages too long to read are
    shortened here.
    """

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(readable(message))


class CheckFailed(CompressError):
    """The input was fine and a gate or check on the outcome failed (parity, hashes, non-finite loss)."""

    exit_code = 1


class Interrupted(BaseException):
    """A stop signal arrived; the message says whether the same command continues or starts from the beginning.

    Not an `Exception`, so that code that turns a library's failure into an error does not catch it.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.signal_number, self.exit_code = signal_number, 128 + signal_number


def with_article(title: str) -> str:
    """Return the title of a family, or the name of a kind, with its article: an MPNet, and a ModernBERT."""
    return f"{'an' if title.startswith(('A', 'E', 'MP', 'X', 'e')) else 'a'} {title}"


def readable(message: str) -> str:
    """Return `message` with long words and lines cut in the middle, and control characters written out."""
    lines = message.split("\n")
    shown = [_printable_line(line) for line in lines[:_LINES]]
    return "\n".join([*shown, *([f"… and {len(lines) - _LINES:,} more lines"] if len(lines) > _LINES else [])])


def _printable_line(line: str) -> str:
    if len(line) > _WORD:  # long words are keys, values and paths: those beside them stay
        line = _truncate(" ".join(_truncate(word, _WORD) for word in line.split(" ")), _LINE)
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most * 2 // 3]} … {text[-most // 3 :]}"


def brief(value: Any) -> str:
    """Return `value` for a message, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def did_you_mean(name: str, known: list[str]) -> str:
    """Return `; did you mean `x`?` for the nearest known name, or a list of the known ones."""
    return nearest(name, known) or (f"; known: {', '.join(sorted(known))}" if known else "")


def nearest(name: str, known: list[str], *, cutoff: float = 0.6) -> str:
    """Return `; did you mean `x`?` for the nearest known name, or nothing if none is near. `cutoff`: the least similarity, from 0 to 1."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean `{near[0]}`?" if near else ""


def encoded_otherwise(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks the same and has its characters, such as é, encoded in another way; None if there is none."""
    import unicodedata

    composed = unicodedata.normalize("NFC", name)
    return next((other for other in known if other != name and unicodedata.normalize("NFC", other) == composed), None)
