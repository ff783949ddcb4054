"""A command's process does not spend its time looking for reference cycles among what it has imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Registered first, so called last at exit.
LOOK_AT_EXIT = """\
import atexit, gc, sys
atexit.register(lambda: print(gc.get_threshold()[0] >= 10_000, gc.get_freeze_count() > 1000))
"""
COMMAND = "from compress.__main__ import main; sys.argv = ['compress', '--version']; main()"
WORKER = "from compress.processes.worker import serve; serve(object())"
HELPER = "from compress.processes.helpers import _run; _run(lambda: None, ())"


@pytest.mark.parametrize("start", [COMMAND, WORKER, HELPER])
def test_each_kind_of_process_collects_rarely_and_not_at_its_end(start: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK_AT_EXIT + start], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert (done.returncode, (done.stdout + done.stderr).split()[-2:]) == (0, ["True", "True"])
