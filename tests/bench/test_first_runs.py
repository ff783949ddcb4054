"""What a runtime does at its first run of a shape, such as compiling for it, is in no measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from compress.bench import child
from compress.bench.child import Server


def test_what_a_runtime_does_once_for_a_shape_is_of_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a run takes, of which the first is its own warm-up."""
    ran: list[int] = []

    class Runner:
        def prepare(self, rows: Sequence[int]) -> Callable[[], object]:
            return lambda: ran.append(rows[0])

    def hundreds(work: Callable[[], object]) -> tuple[float, float]:
        work()
        return 100.0 * len(ran), 0.0

    monkeypatch.setattr(child, "_timed", hundreds)
    server = Server()
    server.runner = Runner()  # type: ignore[assignment]
    assert [server.run([length])[0] for length in (5, 7, 5)] == [200, 400, 500]
    assert ran == [5, 5, 7, 7, 5]
