"""A process that hangs is stopped at its limit, with all its children, and reported in one line."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from compress.errors import CheckFailed
from compress.processes.children import kill_process, run
from compress.processes.worker import Worker

# Starts a process that sleeps forever with its pipes open, writes its id to a file, and then does LAST.
PARENT = """
import subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session={alone})
Path({place!r}).write_text(str(child.pid))
{last}
"""


def parent(place: Path, last: str, *, alone: bool = False) -> list[str]:
    return [sys.executable, "-c", PARENT.format(place=str(place), last=last, alone=alone)]


def sleeper(place: Path) -> psutil.Process:
    until = time.monotonic() + 30
    while not (place.exists() and place.read_text()):
        assert time.monotonic() < until, "it was never started"
        time.sleep(0.01)
    return psutil.Process(int(place.read_text()))


def gone(process: psutil.Process) -> bool:
    """Whether the process is killed, even if it is still a zombie."""
    until = time.monotonic() + 10
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where the id of the started process is written; it is killed at the end."""
    path = tmp_path / "pid"
    yield path
    if path.exists() and psutil.pid_exists(int(path.read_text())):
        os.kill(int(path.read_text()), signal.SIGKILL)


def test_a_command_s_output_is_returned() -> None:
    assert run(
        [sys.executable, "-c", "print('out'); import os; print(os.environ['A'])"], 60, environment={"A": "b"}
    ) == ("out\nb\n")


def test_a_command_that_fails_is_a_line_with_its_last_words() -> None:
    with pytest.raises(CheckFailed) as failed:
        run([sys.executable, "-c", "import sys; sys.exit('no such\\nthing')"], 60)
    assert str(failed.value).endswith(": exit status 1: no such thing")
    assert "\n" not in str(failed.value)


@pytest.mark.slow
def test_a_command_that_hangs_is_stopped_with_what_it_started(place: Path) -> None:
    started = time.monotonic()
    with pytest.raises(CheckFailed, match=r"did not end within 4 s; it was stopped, with all that it started"):
        run(parent(place, "time.sleep(600)"), 4)
    assert time.monotonic() - started < 20
    assert gone(sleeper(place))


def test_what_a_command_leaves_behind_does_not_hold_it_up(place: Path) -> None:
    """For example a telemetry process, which inherits the pipes."""
    started = time.monotonic()
    assert run(parent(place, "print('done')"), 60) == "done\n"
    assert time.monotonic() - started < 20
    assert gone(sleeper(place))


def test_an_interrupt_stops_it_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        sleeper(place)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(parent(place, "time.sleep(600)"), 60)
    assert gone(sleeper(place))


def test_what_left_the_group_is_found_by_its_parent(place: Path) -> None:
    process = subprocess.Popen(parent(place, "time.sleep(600)", alone=True))
    other = sleeper(place)
    assert kill_process(process) == -9
    assert gone(other)


def worker(place: Path, last: str, *, alone: bool = False) -> Worker:
    return Worker(parent(place, last, alone=alone), dict(os.environ), 0.5)


@pytest.mark.parametrize(
    "last", ["time.sleep(600)", "sys.stdin.readline(); print('{\"value\": 1}', flush=True); time.sleep(600)"]
)
def test_a_worker_ends_with_what_it_started(place: Path, last: str) -> None:
    """Whether it hangs or answers: its child process holds its answer pipe open."""
    with worker(place, last) as child:
        other = sleeper(place)
        started = time.monotonic()
        if "value" in last:
            assert child.ask("something") == 1
        else:
            with pytest.raises(CheckFailed, match=r"no answer in 0\.5 s"):
                child.ask("something")
            assert gone(other)
    assert gone(other)
    assert time.monotonic() - started < 5


def test_a_process_that_left_a_worker_s_group_does_not_hold_us_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker has ended by itself, so nothing refers to the other process any more, which holds the pipe open."""
    monkeypatch.setattr("compress.processes.worker._READER_SECONDS", 0.2)
    started = time.monotonic()
    with worker(place, "", alone=True) as child:
        sleeper(place)
        child._process.wait(30)
    assert time.monotonic() - started < 20


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt, also if this process was started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("cause", ["its limit", "an interrupt"])
def test_a_campaign_s_step_that_does_not_stop_is_killed(
    cause: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is first told to save, and ignores that."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    state = importlib.import_module("campaign.state")
    monkeypatch.setattr(state, "_GRACE", 0.2)
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN){PARENT}"
    command = [sys.executable, "-c", deaf.format(place=str(place), last="time.sleep(600)", alone=False)]
    started: list[tuple[Step, psutil.Process]] = []

    class Step(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **more: Any) -> None:
            super().__init__(*words, **more)
            started.append((self, sleeper(place)))
            if cause == "an interrupt":
                threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()

    monkeypatch.setattr(state.subprocess, "Popen", Step)
    with (place.parent / "log").open("wb") as log:
        if cause == "its limit":
            assert state._carried_out(command, log, 0.2) == (-signal.SIGKILL, True)
        else:
            with pytest.raises(KeyboardInterrupt):
                state._carried_out(command, log, 60.0)
    ((process, other),) = started
    assert process.returncode == -signal.SIGKILL
    assert gone(other)
