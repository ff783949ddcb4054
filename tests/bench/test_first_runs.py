"""A runtime's work at its first run of a shape, such as compilation, is excluded from measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from compress.bench import child
from compress.bench.child import Server

pytestmark = pytest.mark.end_to_end

SHORT, LONG = 1.0, 100.0  # milliseconds below and above the limit up to which a run needs an untimed one before it


class Runner:
    """A runner that records the length of every run."""

    def __init__(self) -> None:
        self.ran: list[int] = []

    def prepare(self, rows: Sequence[int]) -> Callable[[], object]:
        return lambda: self.ran.append(rows[0])


def server_of(monkeypatch: pytest.MonkeyPatch, runner: Runner, milliseconds: float) -> Server:
    """Return a server whose first run takes `milliseconds`, the second twice as long, and so on."""

    def count(work: Callable[[], object]) -> tuple[float, float]:
        work()
        return milliseconds * len(runner.ran), 0.0

    monkeypatch.setattr(child, "_time_call", count)
    server = Server()
    server.runner = runner  # type: ignore[assignment]
    return server


def test_what_a_runtime_does_once_for_a_shape_is_of_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a run takes; the first run of a shape is its warm-up."""
    runner = Runner()
    server = server_of(monkeypatch, runner, LONG)
    assert [server.run([length])[0] for length in (5, 7, 5)] == [200, 400, 500]
    assert runner.ran == [5, 5, 7, 7, 5]


def test_a_long_run_is_timed_at_once_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner()
    server = server_of(monkeypatch, runner, LONG)
    server.warm([5])
    assert server.run([5])[0] == 200
    assert runner.ran == [5, 5]


def test_a_short_run_has_one_untimed_run_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its shape is new, warmed up or neither: never two."""
    runner = Runner()
    server = server_of(monkeypatch, runner, SHORT)
    server.warm([5])
    assert [server.run([length])[0] for length in (5, 5, 7)] == [3, 5, 7]
    assert runner.ran == [5] * 5 + [7] * 2
