"""docs/cli.md: every command with its options, as `--help` shows them."""

from __future__ import annotations

import html
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import typer

from compress.cli import app
from compress.processes.children import run

SECONDS = 300.0  # for the help of all commands
COMMAND = [sys.executable, "-m", "typer", "compress.cli", "utils", "docs", "--name", "compress", "--output"]


def cli_page() -> str:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "cli.md"
        run([*COMMAND, str(page)], SECONDS)
        return _grouped(
            _whole_summaries(html.unescape(page.read_text(encoding="utf-8")))
        )  # typer escapes inside backticks, too


def _whole_summaries(page: str) -> str:
    """The list of commands with the first paragraph of each command's help, which typer cuts at 45 characters."""
    paragraphs = dict(re.findall(r"^## `compress ([\w-]+)`\n\n(.+?)\n\n", page, re.MULTILINE | re.DOTALL))

    def whole(match: re.Match[str]) -> str:
        return f"* `{match[1]}`: {' '.join(paragraphs[match[1]].split())}"

    commands, mark, rest = page.partition("\n## ")
    return re.sub(r"^\* `([\w]+)`: .+$", whole, commands, flags=re.MULTILINE) + mark + rest


def _grouped(page: str) -> str:
    """Each command's options in the groups of its help, under their titles."""
    first, *sections = re.split(r"(?=^## `compress )", page, flags=re.MULTILINE)
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    names = (section.split("`")[1].removeprefix("compress ") for section in sections)
    return first + "".join(_section(text, commands[name]) for name, text in zip(names, sections, strict=True))


def _section(text: str, command: Any) -> str:
    panels = {name: param.rich_help_panel for param in command.params for name in param.opts}
    before, mark, after = text.partition("**Options**:\n\n")
    options, end, rest = after.partition("\n\n")
    groups: dict[str | None, list[str]] = {None: []}  # first: Markdown would add these to the group above them
    for line in options.splitlines():
        names = re.findall(r"--[\w-]+", line.partition("`:")[0])
        groups.setdefault(panels.get(names[0]), []).append(line)
    titled = ["\n".join([*([f"*{title}*\n"] if title else []), *lines]) for title, lines in groups.items()]
    return before + mark + "\n\n".join(titled) + (end + rest or "\n")
