"""The words of a command line, before they are read: slips of shells and scripts that would pass for something else."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import CompressError
from ..paths import from_home

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
    """The words with `~` read where a shell leaves it. Raises `CompressError` for an empty word where a name or place belongs."""
    _check_not_empty(words)
    return [_expanded(word) for word in words]


def _check_not_empty(words: Sequence[str]) -> None:
    """An empty value, as of a variable that is not set, would stand for the option's default, or for this folder. `predict`
    reads its texts after the bundle, and one of them may be empty."""
    for place, (before, word) in enumerate(zip(["", *words], words, strict=False)):
        option = before if word == "" else word.removesuffix("=")
        if option != word and option in _VALUED:
            raise CompressError(f"{option}: expected a value, found an empty one")
        if word == "" and (words[0] != "predict" or place < 2):
            command = " ".join(["compress", *words[:1]]).strip()
            raise CompressError(f"{command}: expected a name or a place, found an empty word")


def _expanded(word: str) -> str:
    """`--out=~/runs` as `--out ~/runs`, which a shell expands."""
    option, equals, value = word.partition("=")
    return f"{option}={from_home(value)}" if equals and option in _VALUED and value.startswith("~") else word
