"""Run the functions behind the command line on damaged input: each case must be accepted, or refused with a readable message."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutations

import compress
from compress.errors import CompressError

LONGEST, MOST_LINES = 2100, 51  # characters of a line of a message, lines
LONG = 30.0  # seconds of CPU time, so that a busy machine does not matter
PACKAGE = str(Path(compress.__file__).parent)

Case = tuple[str, Callable[[], Any]]


@dataclass(frozen=True)
class Finding:
    """What happened in `case` instead of success or a clean error."""

    case: str
    problem: str

    def __str__(self) -> str:
        return f"{self.case}\n    {self.problem}"


def findings(cases: Iterable[Case]) -> tuple[int, list[Finding]]:
    """Return (how many cases were refused, the cases that neither succeeded nor were refused cleanly)."""
    refused, failures = 0, []
    for said, use in cases:
        start = time.process_time()
        try:
            use()
        except CompressError as error:
            refused += 1
            failures += [Finding(said, problem)] if (problem := _unreadable(str(error))) else []
        except Exception as error:
            failures.append(Finding(said, f"{type(error).__name__}: {error!s:.200} at {_place(error)}"))
        if (taken := time.process_time() - start) > LONG:
            failures.append(Finding(said, f"took {taken:.0f} s"))
    return refused, failures


def _unreadable(message: str) -> str:
    lines = message.split("\n")
    if not message or len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST:
        return f"a message of {len(lines)} lines and {len(message)} characters"
    return "" if all(map(str.isprintable, lines)) else f"characters that cannot be shown: {message!a:.200}"


def _place(error: BaseException) -> str:
    """Return the last lines of the package in the traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(PACKAGE)]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-3:]))


def check(cases: Iterable[Case], count: int) -> None:
    """Check that all `count` cases are accepted or refused, and that both occur."""
    refused, failures = findings(cases)
    assert not failures, f"{len(failures)} of {count}:\n" + "\n".join(map(str, failures[:20]))
    assert count // 20 < refused < count, f"{refused} of {count} refused"


def damaged_document(document: Any, number: int) -> tuple[str, Any]:
    return next(mutations.documents(document, number, 1))


def damaged_bytes(data: bytes, number: int) -> tuple[str, bytes]:
    return next(mutations.bytes_(data, number, 1))


def any_value(rng: random.Random) -> Any:
    return rng.choice(rng.choice((mutations.HOSTILE, mutations.NUMBERS, mutations.OTHERS)))
