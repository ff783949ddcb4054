"""Where tables are printed. Imports nothing of the pipeline: a report needs none of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def console(*, stderr: bool = False) -> Console:
    """A rich console; it honours NO_COLOR and does not wrap tables when its output is not a terminal. Words in brackets or colons are
    printed as they are: paths, labels and settings have some."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 160
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def headed(word: str, style: str, rest: str) -> Text:
    """A line that begins with a word in a style."""
    from rich.text import Text

    return Text.assemble((word, style), rest)
