"""Files of zeros: their disk space is allocated before they are filled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from compress.files import arrays
from compress.files.arrays import zeros_file

FULL = """
import sys
from pathlib import Path
from compress.files.arrays import zeros_file
try:
    zeros_file(Path(sys.argv[1], "table.npy"), (400_000, 2))[:] = 1
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize("shape", [(5, 2), (7,), (3, 2, 2), (0, 2)])
def test_what_is_filled_is_what_numpy_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    monkeypatch.setattr(arrays, "_AT_ONCE", 12)
    path = tmp_path / "table.npy"
    table = zeros_file(path, shape)
    assert table.shape == shape and table.dtype == np.float32 and not table.any()
    numbers = np.arange(table.size, dtype=np.float32).reshape(shape)
    table[:] = numbers
    table.flush()
    np.testing.assert_array_equal(np.load(path, allow_pickle=False), numbers)


def test_it_has_room_on_the_disk_before_it_is_filled(tmp_path: Path) -> None:
    zeros_file(tmp_path / "table.npy", (100_000, 2))
    status = (tmp_path / "table.npy").stat()
    assert status.st_blocks * 512 >= status.st_size > 800_000


def test_a_disk_without_room_is_an_error_and_no_signal(tmp_path: Path) -> None:
    mounted = 'mount -t tmpfs -o size=1200k compress "$1" && exec "$2" -c "$3" "$1"'
    alone = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    try:
        tried = subprocess.run([*alone, 'mount -t tmpfs compress "$0"', tmp_path], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("a disk of our own needs `unshare` and `mount`")
    if tried.returncode:
        pytest.skip("no disk of our own may be mounted here")
    words = [*alone, mounted, "sh", str(tmp_path), sys.executable, FULL]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "No space left on device\n"), done.stderr
