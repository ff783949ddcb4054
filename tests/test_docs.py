"""Generated pages are up to date."""

from __future__ import annotations

import re
from pathlib import Path

import generate
import pytest

from compress import catalog
from compress.models.cards import load_teacher
from compress.spec.task import TaskSpec
from compress.tasks.own.files import OwnFiles
from compress.tasks.own.template import task_yaml

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("page", generate.PAGES)
def test_a_generated_page_is_current(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == generate.PAGES[page](), "run `make docs`"


@pytest.mark.parametrize("page", generate.BLOCKS)
def test_the_generated_blocks_of_a_page_are_current(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert text == generate.with_blocks(page, text), "run `make docs`"


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings: lower case, no punctuation, hyphens for spaces."""
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


def test_the_indexes_name_every_page() -> None:
    for indexes, pages in (
        ("docs/README.md", "docs/*.md"),
        ("reports/all.md", "reports/*/*.md"),
        ("reports/README.md reports/all.md", "reports/*.md"),
    ):
        text = "".join((ROOT / index).read_text(encoding="utf-8") for index in indexes.split())
        folder = (ROOT / indexes.split()[0]).parent
        missing = [
            page
            for page in ROOT.glob(pages)
            if page.name != "README.md" and f"({page.relative_to(folder)})" not in text
        ]
        assert not missing, f"{indexes}: {missing}"


def test_the_index_of_reports_leads_to_their_pages() -> None:
    text = (ROOT / "reports/index.html").read_text(encoding="utf-8")
    links = re.findall(r' href="(?!https?:|#)([^"#]+)', text)
    assert all((ROOT / "reports" / link).exists() for link in links)
    pages = {str(page.relative_to(ROOT / "reports")) for page in ROOT.glob("reports/*/report.html")}
    assert pages and pages <= set(links)


def test_committed_pages_stay_light() -> None:
    sizes = {page: page.stat().st_size for page in ROOT.glob("reports/**/*.html")}
    assert max(sizes.values()) <= 2_000_000
    assert sum(sizes.values()) <= 6_000_000


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_the_modules_that_a_page_names_are_there(page: str) -> None:
    names = re.findall(r"`([\w/]+(?:\.py|/))`", (ROOT / page).read_text(encoding="utf-8"))
    missing = [name for name in names if not ((ROOT / name).exists() or (ROOT / "compress" / name).exists())]
    assert names and not missing


def test_every_field_of_the_reference_has_a_meaning() -> None:
    fields = re.findall(
        r"^\|(?: `\w+` \|)? `(\w+)` \| [^|]+ \| [^|]* \| *\|$", generate.PAGES["docs/reference.md"](), re.MULTILINE
    )
    assert not fields, "add a `description` with a unit"


def test_the_page_that_a_new_task_file_names_has_all_fields(tmp_path: Path) -> None:
    folder = ROOT / "examples/reviews"
    files = OwnFiles(folder / "train.csv", folder / "dev.csv", text="review", label="stars")
    text, *_ = task_yaml(files, tmp_path / "reviews.yaml")
    match = re.search(r"(docs/\w+\.md) has all fields", text)
    assert match is not None
    page = (ROOT / match[1]).read_text(encoding="utf-8")
    assert all(f"\n| `{name}` |" in page for name in TaskSpec.model_fields)


def test_the_default_teachers_of_recipes_are_as_told() -> None:
    chosen = {name: str(catalog.load_recipe(name).teacher) for name in catalog.names("recipes")}
    others = {name for name, teacher in chosen.items() if teacher != "minilm-l6"}
    drawn = {name for name in others if load_teacher(chosen[name]).random is not None}
    match = re.search(
        r"`minilm-l6`, but `bert-base` in (.+), and one of random\nweights in those that pre-train",
        (ROOT / "docs/recipes.md").read_text(encoding="utf-8"),
    )
    assert match is not None
    assert {name for name, teacher in chosen.items() if teacher == "bert-base"} == set(re.findall(r"`(.+?)`", match[1]))
    assert others - drawn == set(re.findall(r"`(.+?)`", match[1]))
    assert drawn == {name for name in chosen if name.endswith("-pretrain")}
