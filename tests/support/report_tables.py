"""A report's only task, and the columns of its tables."""

from __future__ import annotations

from pathlib import Path

from compress.report.grouping.groups import Task
from compress.report.page import tasks_of
from compress.report.text.cells import Table
from compress.results import Result


def only(results: list[Result], folders: list[Path] | None = None) -> Task:
    (task,) = tasks_of(results, folders or [])
    return task


def column(table: Table, name: str) -> list[str]:
    index = [heading.text for heading in table.columns].index(name)
    return [str(line.cells[index]) for line in table.lines]
