"""Helper processes beside a command's first process."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest
from search_child import toy_search, wait_to_be_ended, work_beside

from compress.processes.helpers import Helpers


def test_helpers_share_the_trials_and_are_waited_for(tmp_path: Path) -> None:
    with Helpers(work_beside, (tmp_path / "s", 6), 2):
        pass
    trials = toy_search(tmp_path / "s").finished()
    assert len([trial for trial in trials if trial.same_as is None]) == 6
    computed = (tmp_path / "s" / "computed").read_text().splitlines()
    assert len(computed) == len(set(computed)) == 6


def test_what_stops_the_first_process_ends_its_helpers(tmp_path: Path) -> None:
    def begun() -> list[int]:
        return [int(path.name) for path in tmp_path.iterdir()]

    with pytest.raises(KeyboardInterrupt), Helpers(wait_to_be_ended, (tmp_path,), 2):
        deadline = time.monotonic() + 60
        while len(begun()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        raise KeyboardInterrupt
    assert not any(psutil.pid_exists(process) for process in begun())
