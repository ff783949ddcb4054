"""The committed pages equal those that the current code makes of the results beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from default_suite import keeping

from compress.report import collect
from compress.report.page import tasks_of
from compress.report.sections.overview import overview_table
from compress.report.sections.scores import main_table
from compress.report.text import markdown

REPORTS = Path(__file__).resolve().parents[2] / "reports"
COMMITTED = sorted(path.parent.name for kind in ("result.json", "results.json") for path in REPORTS.glob(f"*/{kind}"))


@pytest.mark.parametrize("name", keeping(COMMITTED, {*COMMITTED} - {"base", "glue-minilm"}))  # the two largest
def test_the_main_tables_are_those_of_the_results(name: str) -> None:
    folder = REPORTS / name
    page = set((folder / "report.md").read_text(encoding="utf-8").splitlines())
    tasks = tasks_of(collect([folder]), [folder])
    tables = [*map(main_table, tasks), *([overview] if (overview := overview_table(tasks)) else [])]
    missing = [
        line for table in tables for line in markdown.table(table).splitlines() if line.strip() and line not in page
    ]
    assert not missing, f"draw it again: compress report reports/{name} -o reports/{name}"
