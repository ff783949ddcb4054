"""Listeners that record what a run says, or stop it."""

from __future__ import annotations

from typing import Any

from compress.pipeline import Listener


class Notices(Listener):
    """Records the notices."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, line: str) -> None:
        self.notices.append(line)


class StopError(Exception):
    """Raised to stop as a kill would: nothing of the run comes after it."""


class Stopping(Listener):
    """Records the steps of the trainings of `total` steps, None for all, and raises `StopError` in step `at`."""

    def __init__(self, at: int, total: int | None = None) -> None:
        self._at, self._total, self.seen = at, total, list[int]()

    def step(self, report: Any) -> None:
        if self._total in (None, report.total):
            self.seen.append(report.step)
            if report.step == self._at:
                raise StopError
