"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..pipeline.context import Listener

if TYPE_CHECKING:
    from rich.console import Console

_PLAIN_EVERY_SECONDS = 30.0


def console(*, stderr: bool = False) -> Console:
    """A rich console; it honours NO_COLOR and does not wrap tables when its output is not a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else 160, highlight=False)


class Display(Listener):
    """Shows stages and optimizer steps: loss terms, examples/s, tokens/s and the time left."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._console = console(stderr=True)
        self._quiet = quiet
        self._live: Any = None
        self._task: Any = None
        self._label = ""
        self._rate = 0.0
        self._examples = 0.0
        self._last_plain = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._quiet:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[detail]}"),
            )
            self._live = Progress(*columns, console=self._console, transient=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def stage(self, label: str, cached: bool) -> None:
        self._label, self._rate, self._examples = label, 0.0, 0.0
        if self._task is not None:
            self._live.remove_task(self._task)
            self._task = None
        self._line(f"[dim]cached[/]  {label}" if cached else f"[bold]run[/]     {label}")

    def notice(self, line: str) -> None:
        self._line(f"[yellow]note[/]    {line}")

    def step(self, report: Any) -> None:
        self._rate = _smooth(self._rate, report.tokens / report.seconds)
        self._examples = _smooth(self._examples, report.examples / report.seconds)
        detail = f"{_losses(report)}  {self._examples:,.0f} examples/s  {self._rate:,.0f} tokens/s"
        if report.tuning is not None:
            self._line(f"        epoch {report.epoch:.2f}: tuning score {report.tuning:.2f}")
        if self._live is not None:
            self._advance(report, detail)
        elif time.monotonic() - self._last_plain > _PLAIN_EVERY_SECONDS:
            self._last_plain = time.monotonic()
            left = (report.total - report.step) * report.examples / max(self._examples, 1e-9)
            self._line(f"        step {report.step}/{report.total}  {detail}  {_clock(left)} left")

    def _advance(self, report: Any, detail: str) -> None:
        if self._task is None:
            self._task = self._live.add_task(self._label, total=report.total, detail=detail)
        self._live.update(self._task, completed=report.step, detail=detail)

    def _line(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text)


def _smooth(old: float, new: float) -> float:
    return new if old == 0 else 0.95 * old + 0.05 * new


def _losses(report: Any) -> str:
    return "  ".join(f"{name} {value:.4f}" for name, value in report.losses.items())


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"
