"""Text and tables as GitHub's Markdown."""

from __future__ import annotations

import re

from .cells import Table

# What Markdown or HTML would interpret. Underscores inside words are left: GitHub does not interpret those.
_ACTIVE = re.compile(r"([\\`*\[\]|~]|(?<!\w)_|_(?!\w))")
# At the start of a block: headings, lists, rules and underlines. GitHub makes links of bare addresses.
_BLOCK = re.compile(r"^(\d{0,9})([#.)+=-])(?=[ #=-]|$)")
_LINK = re.compile(r"(?<=www)(\.)|:(?=//)", re.IGNORECASE)
# Control characters, characters that change the direction of text, halves of surrogate pairs.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: object) -> str:
    """Return the text as one line: without breaks and invisible control characters."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", " ".join(str(text).split()))


def in_html(text: object) -> str:
    """Return the text for a line of HTML, as a `<summary>`, in which Markdown is not interpreted."""
    return one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape(text: object) -> str:
    """Return the text escaped, so that it is shown literally: one line, no markup."""
    plain = _LINK.sub(lambda match: f"&#{ord(match[0])};", in_html(text))
    return _BLOCK.sub(r"\1\\\2", _ACTIVE.sub(r"\\\1", plain))


def code_span(text: object) -> str:
    """Return the text as code without markup, in one line. Not for cells of a table, which a pipe would split."""
    shown = one_line(text)
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", shown)), default=0) + 1)
    return (
        f"{ticks} {shown} {ticks}"
        if shown.startswith("`") or shown.endswith("`") or not shown
        else ticks + shown + ticks
    )


def fence(text: str) -> str:
    """Return a fence of backticks that the text does not contain."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def table(content: Table) -> str:
    """Return a pipe table, with numbers right-aligned."""
    head = [escape(column) for column in content.columns]
    rule = ["--:" if column.numeric else ":--" for column in content.columns]
    rows = [head, rule, *([escape(cell) for cell in line.cells] for line in content.lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)
