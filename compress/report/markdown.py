"""Text and tables as GitHub's Markdown."""

from __future__ import annotations

import re

from .tables import Table

# What Markdown or HTML would act on. Underscores inside words are left: GitHub does not act on those.
_ACTIVE = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")


def escape(text: object) -> str:
    """Text that shows as it is: one line, no markup."""
    plain = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ACTIVE.sub(r"\\\1", plain)


def fence(text: str) -> str:
    """Backticks that the text does not contain."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def table(found: Table) -> str:
    """A pipe table, numbers to the right."""
    head = [escape(column) for column in found.columns]
    rule = ["--:" if column.numeric else ":--" for column in found.columns]
    rows = [head, rule, *([escape(cell) for cell in line.cells] for line in found.lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
