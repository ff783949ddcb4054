"""Folders of runs and of reports: a report has copies of results, which may be older than those of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .result import MODELS, REPORT, REPORT_MARK, Result

Place = tuple[Path, Result]  # a file, and a result in it


def without_copies(places: Sequence[Place]) -> list[Place]:
    """Return `places` without those in reports whose run's own folder is among them too."""
    own = {run_of(result) for file, result in places if _is_own(file, result)}
    return [(file, result) for file, result in places if _is_own(file, result) or run_of(result) not in own]


def run_of(result: Result) -> tuple[str, str]:
    """Return what identifies a run: its name and its kind of machine, as two machines give a run the same name."""
    return result.run, result.machine.kind


def _is_own(file: Path, result: Result) -> bool:
    """Whether the file is that of the run, not of a report."""
    return file.parent.name == result.run or (file.parent / MODELS).exists()


def is_report(folder: Path) -> bool:
    """Whether `report.md` in `folder` is one that this tool wrote."""
    page = folder / REPORT[0]
    return page.is_file() and REPORT_MARK.encode() in page.read_bytes()[-200:]
