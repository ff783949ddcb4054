"""Checks of a command line's words before they are parsed, for mistakes of shells and scripts that would be misread."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import CompressError
from ..files.paths import from_home

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


def as_meant(words: Sequence[str]) -> list[str]:
    """Return the words with `~` expanded where a shell does not. Raises `CompressError` for an empty word in place of a name or path."""
    _check_not_empty(words)
    return [_expand_home(word) for word in words]


def _check_not_empty(words: Sequence[str]) -> None:
    """Refuse an empty value, as of an unset variable, which would mean the option's default, or this folder. `predict` reads its texts
    after the bundle, and one of them may be empty."""
    for place, (before, word) in enumerate(zip(["", *words], words, strict=False)):
        option = before if word == "" else word.removesuffix("=")
        if option != word and option in _VALUED:
            raise CompressError(f"{option}: expected a value, found an empty one")
        if word == "" and (words[0] != "predict" or place < 2):
            command = " ".join(["compress", *words[:1]]).strip()
            raise CompressError(f"{command}: expected a name or a place, found an empty word")


def _expand_home(word: str) -> str:
    """Expand `--out=~/runs` as a shell expands `--out ~/runs`."""
    option, equals, value = word.partition("=")
    return f"{option}={from_home(value)}" if equals and option in _VALUED and value.startswith("~") else word
