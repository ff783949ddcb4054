"""Six processes that repeatedly finish the same run at once, while it is read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from command_runs import RUN, Commands, leftovers

from compress.results import read_result

pytestmark = pytest.mark.end_to_end


@pytest.mark.slow
def test_six_commands_that_finish_one_run_at_once_while_it_is_read(commands: Commands, tmp_path: Path) -> None:
    root, path = tmp_path / "root", tmp_path / "root" / RUN / "result.json"
    processes = [commands.forks.start(root, do="run", times=6) for _ in range(6)]
    reads, deadline = 0, time.monotonic() + 100
    while any(map(runs, processes)):
        assert time.monotonic() < deadline
        if reads or path.exists():
            assert read_result(path).models
            reads += 1
    assert [commands.forks.wait(process) for process in processes] == [0] * 6, commands.said(root)
    assert reads > 20
    assert leftovers(root) == []


def runs(process: int) -> bool:
    """Whether the process runs; one that has ended is a zombie until it is waited for."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
