"""Commands that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names


def refused(cli: Cli, *arguments: object) -> str:
    """Check that the command is refused, and return its one line."""
    code, out, error = cli(*arguments)
    assert (code, out) == (2, ""), (code, out, error)
    assert error.startswith("error: ")
    assert len(error.splitlines()) == 1, error
    assert len(error) < 3000, error
    return error
