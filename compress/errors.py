"""Errors that a user sees as one line, and the exit code each one means."""

from __future__ import annotations


class CompressError(Exception):
    """The user's input is wrong or cannot be used: what was expected, what was found, what to do.

    The command line prints the message without a traceback and exits with `exit_code`.
    """

    exit_code = 2


class CheckFailed(CompressError):
    """The input was fine and a gate or check on the outcome failed (parity, hashes, non-finite loss)."""

    exit_code = 1


class Interrupted(BaseException):
    """A stop signal arrived; state is saved and the same command continues from it.

    No `Exception`: code that turns a library's failure into an error must not take it for one.
    """

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def did_you_mean(name: str, known: list[str]) -> str:
    """`; did you mean `x`?` for the nearest known name, or a list of the known ones."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"; did you mean `{near[0]}`?"
    return f"; known: {', '.join(sorted(known))}" if known else ""
