"""`compress predict --output`: the file has its name once it is complete, whatever ends the command, and replaces nothing."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from embedder_toys import averages
from predict_runs import predict
from runtime_toys import bag, describe

from compress.cli.predict.files import new_file
from compress.errors import CompressError

pytestmark = pytest.mark.end_to_end

PROGRAM = "from compress.cli import main; main()"
LIMITED = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); {PROGRAM}"
SECONDS = 60.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a folder for nothing but the output."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def rows_of(path: Path, count: int) -> Path:
    path.write_text("".join(json.dumps({"text": f"a {number % 7}"}) + "\n" for number in range(count)))
    return path


def table_rows(path: Path) -> int:
    return len(path.read_text().splitlines()) - 1


def vector_rows(path: Path) -> int:
    return len(np.load(path))


@pytest.mark.parametrize(("make", "name", "count_rows"), [(bag, "x.csv", table_rows), (averages, "x.npy", vector_rows)])
def test_a_killed_command_leaves_no_file_and_blocks_no_rerun(
    tmp_path: Path, place: Path, make: Callable[[Path], Path], name: str, count_rows: Callable[[Path], int]
) -> None:
    describe(bundle := make(tmp_path / "bundle"), max_length=24)
    fifo, out = tmp_path / "in.jsonl", place / name
    os.mkfifo(fifo)
    child = subprocess.Popen([sys.executable, "-c", PROGRAM, "predict", bundle, "-i", fifo, "-o", out])
    with os.fdopen(os.open(fifo, os.O_RDWR), "w") as rows:  # opens even if the command has ended
        rows.write('{"text": "a b"}\n' * 300)  # the first window is answered, and more is awaited
        rows.flush()
        end = time.monotonic() + SECONDS
        while not list(place.iterdir()) and child.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        unfinished = list(place.iterdir())
        child.send_signal(signal.SIGKILL)
        assert child.wait(SECONDS) == -signal.SIGKILL
    assert len(unfinished) == 1
    assert not out.exists()
    done = predict(bundle, "-i", rows_of(tmp_path / "whole.jsonl", 5), "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(place.iterdir()) == [out]
    assert count_rows(out) == 5


def test_a_file_that_may_not_grow_is_named_and_not_kept(folder: Path, tmp_path: Path, place: Path) -> None:
    source, out = rows_of(tmp_path / "in.jsonl", 300), place / "x.jsonl"
    command = [sys.executable, "-c", LIMITED, "predict", folder, "-i", source, "-o", out]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == f"error: {out}: {os.strerror(errno.EFBIG)}; nothing half-written is kept\n"
    assert done.returncode == 2
    assert not list(place.iterdir())


def test_a_file_that_another_process_writes_meanwhile_is_kept(place: Path) -> None:
    path = place / "x.csv"
    with pytest.raises(CompressError, match=r"x\.csv: exists already; choose another"), new_file(path) as second:
        second.write("second")
        with new_file(path) as first:
            first.write("first")
            assert not path.exists()
    assert path.read_text() == "first"
    assert list(place.iterdir()) == [path]


def test_a_link_that_leads_nowhere_is_refused_before_any_work(folder: Path, tmp_path: Path, place: Path) -> None:
    out = place / "x.csv"
    out.symlink_to(tmp_path / "nowhere.csv")
    done = predict(folder, "-i", rows_of(tmp_path / "in.jsonl", 2), "-o", out)
    assert (done.returncode, done.stderr) == (2, f"error: {out}: exists already; choose another file with --output\n")


def test_a_folder_that_is_not_there_is_said_before_any_work(folder: Path, tmp_path: Path) -> None:
    done = predict(folder, "-i", rows_of(tmp_path / "in.jsonl", 2), "-o", out := tmp_path / "none" / "x.csv")
    assert done.returncode == 2
    assert f"{out}: cannot be written: {os.strerror(errno.ENOENT)}; choose another with --output" in done.stderr
