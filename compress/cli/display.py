"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ..pipeline.plan import Listener
from .screen import console, headed_line

if TYPE_CHECKING:
    from rich.text import Text

_PLAIN_EVERY_SECONDS = 60.0


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
        self._steps = 0  # of this stage
        self._last_plain = 0.0
        self._unfinished = False  # whether the last plain line is an incomplete count

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._quiet:
            from rich.progress import BarColumn, Progress, TextColumn
            from rich.table import Column

            def column(text: str, style: str = "none", **how: Any) -> TextColumn:
                return TextColumn(text, style=style, markup=False, table_column=Column(no_wrap=True, **how))

            # On a narrow terminal the last column is cut: first to the speed, then entirely.
            columns = (
                column("{task.description}", style="bold"),
                column("{task.fields[count]}"),
                column("{task.fields[left]}"),
                BarColumn(bar_width=12, table_column=Column(min_width=12)),
                column("{task.fields[detail]}", ratio=1, overflow="ellipsis"),
            )
            self._live = Progress(*columns, console=self._console, transient=True, expand=True)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def run(self, name: str, number: int, count: int) -> None:
        self._line(headed_line(f"{number} of {count}", "bold", f"  {name}"))

    def stage(self, label: str, cached: bool) -> None:
        self._label, self._rate, self._examples, self._steps = label, 0.0, 0.0, 0
        self._unfinished = False
        if self._task is not None:
            self._live.remove_task(self._task)
            self._task = None
        self._line(
            headed_line("cached", "dim", f"  {label}") if cached else headed_line("run", "bold", f"     {label}")
        )

    def built_elsewhere(self, label: str, run: str) -> None:
        self._line(headed_line("built", "dim", f"   {label} of {run}, by another process"))

    def notice(self, line: str) -> None:
        """Print the line even if quiet, because it is not progress."""
        self._console.print(headed_line("note", "yellow", f"    {line}"))

    def outlook(self, line: str) -> None:
        self._line(headed_line("plan", "bold", f"    {line}"))

    def step(self, report: Any) -> None:
        if self._steps == 1:  # the first one warms up, and does not predict the others
            self._rate = self._examples = 0.0
        self._steps += 1
        self._rate = _smooth(self._rate, report.tokens / report.seconds)
        self._examples = _smooth(self._examples, report.examples / report.seconds)
        detail = f"{self._examples:,.0f} examples/s  {self._rate:,.0f} tokens/s  {_losses(report)}"
        left = f"{duration((report.total - report.step) * report.examples / max(self._examples, 1e-9))} left"
        if report.tuning is not None:
            self._line(f"        epoch {report.epoch:.2f}: tuning score {report.tuning:.2f}")
        count = f"{report.step}/{report.total}"
        if self._live is not None:
            self._advance(report.step, report.total, f"step {count}", detail, left)
        elif self._is_due():
            self._line(f"        step {count}  {left}  {detail}")

    def progress(self, what: str, done: int, total: int | None) -> None:
        count = f"{done:,}" if total is None else f"{done:,} of {total:,}"
        if self._live is not None:
            self._advance(done, total, count, what, "")
        elif (done or total) and (self._is_due() or (self._unfinished and done == total)):
            self._unfinished = done != total
            self._line(f"        {what}: {count}")

    def _is_due(self) -> bool:
        """Whether to print a plain line, off a terminal: once in a while."""
        due = time.monotonic() - self._last_plain > _PLAIN_EVERY_SECONDS
        self._last_plain = time.monotonic() if due else self._last_plain
        return due

    def _advance(self, done: int, total: int | None, count: str, detail: str, left: str) -> None:
        fields = {"count": count, "detail": detail, "left": left}
        if self._task is None:
            self._task = self._live.add_task(self._label, total=total, **fields)
        self._live.update(self._task, completed=done, total=total, **fields)

    def _line(self, text: str | Text) -> None:
        if not self._quiet:
            self._console.print(text)


def _smooth(old: float, new: float) -> float:
    return new if old == 0 else 0.95 * old + 0.05 * new


def _losses(report: Any) -> str:
    return "  ".join(f"{name} {value:.4f}" for name, value in report.losses.items())


def duration(seconds: float) -> str:
    """Format as `2:05`, minutes and seconds; from a hundred minutes on as `1 h 42 min`."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
