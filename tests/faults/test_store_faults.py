"""The store under real faults: SIGKILL at every disk access, two processes, full and read-only disks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compress.store import Store

pytestmark = pytest.mark.end_to_end

CHILD = Path(__file__).parents[1] / "support" / "store_child.py"
ROOT = Path(__file__).parents[2]
KEY = "0" * 32


def start(*arguments: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def outcome(process: subprocess.Popen[str]) -> dict:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return json.loads(out)


def test_a_kill_at_any_touch_of_the_disk_leaves_no_half_artefact(tmp_path: Path):
    states = outcome(start("kill", tmp_path, "fresh", 2))
    assert states["kills"] >= 20
    assert (states["halves"], states["unrepaired"], states["leftovers"]) == (0, 0, 0)
    assert 0 < states["found_after_kill"] < states["kills"]  # kills came both before and after the artefact existed


def test_a_kill_while_a_damaged_artefact_is_replaced_leaves_no_wrong_one(tmp_path: Path):
    states = outcome(start("kill", tmp_path, "damaged", 4))
    assert states["kills"] >= 15
    assert (states["unrepaired"], states["leftovers"]) == (0, 0)


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


def pair(tmp_path: Path, *how: str) -> tuple[subprocess.Popen[str], subprocess.Popen[str]]:
    first = start("shared", tmp_path / "store", tmp_path, *how)
    wait_for(tmp_path / "started", first)
    return first, start("shared", tmp_path / "store", tmp_path, *how)


def test_two_processes_build_one_artefact_and_both_get_it(tmp_path: Path):
    first, second = pair(tmp_path)
    assert outcome(first) == outcome(second)
    assert (tmp_path / "made").read_text() == "x"
    assert (tmp_path / "waiting").read_text() == "waiting for another process that is building the teacher"


def test_who_waits_takes_over_from_a_builder_that_is_killed(tmp_path: Path):
    first, second = pair(tmp_path, "dies")
    assert outcome(second)["files"] == ["config.json", "manifest.json", "model.bin", "sub"]
    assert first.wait() == -signal.SIGKILL
    first.communicate()
    assert (tmp_path / "made").read_text() == "xx"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("limit", "cannot write more (File too large)"),
        ("full", "cannot write more (No space left on device)"),
        ("told", "cannot write more (No space left on device)"),
    ],
)
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path: Path, how: str, reason: str):
    root = tmp_path / "store"
    failed = outcome(start("fail", root, how))
    assert failed["code"] == 2
    assert failed["message"].startswith(f"{root}: {reason}")
    assert "\n" not in failed["message"]
    assert Store(root).find(KEY) is None
    assert not any((root / ".building" / KEY / part).exists() for part in ("out", "damaged"))
    assert outcome(start("fail", root, "not at all")) == {"message": None}
    assert Store(root).find(KEY) is not None


def test_a_store_that_is_or_lies_in_a_file(tmp_path: Path):
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "file" / "store"):
        message = outcome(start("fail", root, "not at all"))["message"]
        assert message.startswith(f"{root}: cannot be used as the store (")
        assert "\n" not in message


def test_a_store_that_may_not_be_written(tmp_path: Path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    message = outcome(start("fail", locked / "store", "user"))["message"]
    assert (
        message
        == f"{locked / 'store'}: cannot be used as the store (Permission denied); expected a folder that can be read and written"
    )
