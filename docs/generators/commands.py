"""docs/cli.md: every command with its options, as `--help` shows them."""

from __future__ import annotations

import html
import re
import sys
import tempfile
from pathlib import Path

from compress.processes.children import run

SECONDS = 300.0  # for the help of all commands
COMMAND = [sys.executable, "-m", "typer", "compress.cli", "utils", "docs", "--name", "compress", "--output"]


def cli_page() -> str:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "cli.md"
        run([*COMMAND, str(page)], SECONDS)
        return _whole_summaries(html.unescape(page.read_text(encoding="utf-8")))  # typer escapes inside backticks, too


def _whole_summaries(page: str) -> str:
    """The list of commands with the first paragraph of each command's help, which typer cuts at 45 characters."""
    paragraphs = dict(re.findall(r"^## `compress ([\w-]+)`\n\n(.+?)\n\n", page, re.MULTILINE | re.DOTALL))

    def whole(match: re.Match[str]) -> str:
        return f"* `{match[1]}`: {' '.join(paragraphs[match[1]].split())}"

    commands, mark, rest = page.partition("\n## ")
    return re.sub(r"^\* `([\w]+)`: .+$", whole, commands, flags=re.MULTILINE) + mark + rest
