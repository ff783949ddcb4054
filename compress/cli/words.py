"""A command line's words: checks before they are parsed, for mistakes of shells and scripts that would be misread, and what is wrong with
them afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..errors import CompressError

_VALUED = {
    "--teacher",
    "--student",
    "--task",
    "-t",
    "--corpus",
    "--data-dir",
    "--tuning",
    "--train",
    "--dev",
    "--text",
    "--label",
    "--out",
    "-o",
    "--report",
    "--store",
    "--push",
    "--triton",
}

# How typer words an error of a value's type or range, and how every other error here does.
_WORDINGS = (
    (", unable to parse string as an integer", ""),
    (", unable to parse string as a number", ""),
    ("Input should be a ", "expected a "),
    ("Input should be ", "expected a value "),
    ("Value error, ", ""),
)


def check_words(words: Sequence[str]) -> None:
    """Raise `CompressError` for an empty word in place of a name or path, as of an unset variable, which would mean the option's default,
    or this folder. `predict` reads its texts after the bundle, and one of them may be empty."""
    for index, (before, word) in enumerate(zip(["", *words], words, strict=False)):
        option = before if word == "" else word.removesuffix("=")
        if option != word and option in _VALUED:
            raise CompressError(f"{option}: expected a value, found an empty one")
        if word == "" and (words[0] != "predict" or index < 2):
            command = " ".join(["compress", *words[:1]]).strip()
            raise CompressError(f"{command}: expected a name or a place, found an empty word")


def usage_message(error: Any, words: Sequence[str]) -> str:
    """Return what is wrong with the command line, in one line, with the value that is refused; empty if help was printed."""
    message = " ".join(error.format_message().split()).rstrip(".")
    for typer_wording, our_wording in _WORDINGS:
        message = message.replace(typer_wording, our_wording)
    value = _value_of(getattr(getattr(error, "param", None), "opts", ()), words)
    return message if value is None or repr(value) in message else f"{message}; found {value!r}"


def _value_of(options: Sequence[str], words: Sequence[str]) -> str | None:
    """Return the value that `words` give to an option, by any of its names; None without one, or with several, any of
    which may be the wrong one."""
    values = [after for word, after in pairwise(words) if word in options]
    values += [
        value for option, equals, value in (word.partition("=") for word in words) if equals and option in options
    ]
    return values[0] if len(values) == 1 else None
