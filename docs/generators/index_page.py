"""reports/README.md and the two pages it leads to as reports/index.html, for those who have the reports as files."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from compress.report.render import script_of, template
from compress.report.text.names import Names

REPORTS = Path(__file__).resolve().parents[2] / "reports"
_RIGHT = re.compile(r' style="text-align:right"')
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_LINK = re.compile(r'(?<= href=")(?!https?:|#)([^"#]+)')
_HEADING = re.compile(r"<h([123])>(.*?)</h\1>")
PARTS = ("README.md", "models.md", "all.md")


def index_page() -> str:
    """Links lead to the pages of reports where there are any, to the parts of this page, and else where they did."""
    words = "".join(map(_words, PARTS))
    names = Names()
    title = next(match[2] for match in _HEADING.finditer(words))
    # What is before the first heading; then a level, a heading and what is below it, again and again.
    parts = _HEADING.split(words)
    sections = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    body = "".join(_part(*section, names) for section in sections)
    script = script_of()
    macros: Any = template("macros.html.j2").make_module({"names": names, **script})
    head = macros.head(title)
    page = f'<!doctype html>\n<html lang="en">\n<head>\n{head}</head>\n<body>\n<main>\n{body}</main>\n'
    return f"{page}<script>{script['script']}</script>\n</body>\n</html>\n"


def _words(part: str) -> str:
    """A page in HTML; the headings of all but the first are one level lower."""
    text = (REPORTS / part).read_text(encoding="utf-8")
    if part != PARTS[0]:
        text = re.sub(r"^#", "##", text, flags=re.MULTILINE)
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def _part(level: str, heading: str, below: str, names: Names) -> str:
    text = (
        _RIGHT.sub(' class="number"', below)
        .replace("<th>", '<th scope="col">')
        .replace("<th class", '<th scope="col" class')
    )
    text = _TABLE.sub(lambda table: _scrolling(table[0], names.region(re.sub("<.*?>", "", heading))), text)
    anchor = names.anchor(heading)
    return f'<h{level} id="{anchor}">{heading}</h{level}>{_LINK.sub(lambda link: _page(link[1]), text)}'


def _scrolling(table: str, name: str) -> str:
    return f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0">\n{table}\n</div>'


def _page(target: str) -> str:
    if target in PARTS:
        title = (REPORTS / target).read_text(encoding="utf-8").partition("\n")[0]
        return "#" + Names().anchor(title)
    page = Path(target).with_suffix(".html")
    return str(page) if target.endswith("report.md") and (REPORTS / page).is_file() else target
