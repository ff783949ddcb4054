"""Generated pages are what their generator makes now."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command_page_is_current(generator: ModuleType) -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == generator.cli_page(), "run `make docs`"


def test_the_readme_blocks_are_current(generator: ModuleType) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text == generator.readme(text), "run `make docs`"


def anchors(page: Path) -> set[str]:
    """The headings of a page as GitHub names them: lower case, no punctuation, hyphens for spaces."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("pages", ["*.md", "docs/**/*.md", "reports/**/*.md"])
def test_links_in_the_pages_lead_somewhere(pages: str) -> None:
    for page in ROOT.glob(pages):
        for target in re.findall(r"\]\((?!https?://)([^)]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(file), f"{page.name}: {target}"
