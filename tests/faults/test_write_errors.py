"""Disks that are full, over quota or broken: one line, exit code 2, nothing lost or half-written, and the same command then works.

Write errors are injected at a chosen write and all later ones, as on a real disk; real ones come from a file size limit and from a small
disk in memory.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_runs import HARMS, Commands, bundle_in, check_whole, commands_in, leftovers
from default_suite import keeping, slow
from fault_runs import Forks

from compress.bundle.target import recover

pytestmark = pytest.mark.end_to_end

CODES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
LIMITS = (0, 700, 3_000, 20_000, 30_000)  # bytes
MOUNT = 'mount -t tmpfs -o size=1200k compress "$3/disk" && exec "$@"'


def check(commands: Commands, name: str, root: Path, code: int, reason: str, seen: Path | None = None) -> None:
    """Check the outcome of a command whose writes failed; a command that needs no further write may succeed. `seen`: the path of `root`
    outside the namespace."""
    said = commands.said(root)
    assert code in (0, 2), said
    if code == 2:
        assert said.startswith("error: "), said
        assert said.count("\n") == 1, said
        assert reason in said
        assert len(said) < 600
    place = seen or root
    if name == "force in two steps":
        recover(place / "bundle")  # the disk may have refused the rollback, too
    if name.startswith("force"):
        assert bundle_in(place / "bundle") in ("student", "teacher")
    check_whole(place, commands.expected[name])
    assert leftovers(place) == []


def refuse(commands: Commands, name: str, root: Path, write: int, code: int) -> int:
    commands.start_from(name, root)
    exit_code = commands.give(name, root, write=write, code=code)
    check(commands, name, root, exit_code, os.strerror(code))
    commands.again(name, root)
    return exit_code


def points(commands: Commands) -> list[tuple[str, int, int]]:
    """Return every command, write and error number."""
    writes = [(name, write) for name, count in commands.writes.items() for write in range(count)]
    return [(*point, code) for point, code in itertools.product(writes, CODES)]


@pytest.mark.parametrize("name", keeping(HARMS, ("run", "ship", "report")))
def test_a_few_refused_writes(commands: Commands, tmp_path: Path, name: str) -> None:
    dice = random.Random(name)
    for code in (errno.EIO, dice.choice(CODES[:3])):
        write = dice.randrange(commands.writes[name] - 1)
        assert refuse(commands, name, tmp_path / str(code), write, code) == 2


@pytest.mark.slow
def test_a_hundred_refused_writes(commands: Commands, tmp_path: Path) -> None:
    exit_codes = [
        refuse(commands, name, tmp_path / f"{name}-{write}-{code}", write, code)
        for name, write, code in random.Random(0).sample(points(commands), 100)
    ]
    assert exit_codes.count(2) > 90


@pytest.mark.parametrize("name", ["run", "ship", *slow("report", "force")])
def test_files_that_may_not_grow(commands: Commands, tmp_path: Path, name: str) -> None:
    """Refused by the system during a write."""
    codes = []
    for limit in LIMITS[1:] if name == "run" else LIMITS[2:3]:
        root = tmp_path / str(limit)
        commands.start_from(name, root)
        codes.append(commands.give(name, root, limit=limit))
        check(commands, name, root, codes[-1], os.strerror(errno.EFBIG))
        commands.again(name, root)
    assert 2 in codes


@pytest.fixture(scope="module")
def on_small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Commands in a separate namespace, with a disk of 1,200 KiB in memory mounted at `disk`."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "disk").mkdir()
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    try:
        tried = subprocess.run(
            [*alone, "mount", "-t", "tmpfs", "compress", folder / "disk"], capture_output=True, text=True
        )
    except FileNotFoundError:
        pytest.skip("a disk of our own needs `unshare` and `mount`")
    if tried.returncode:
        pytest.skip(f"no disk of our own may be mounted here: {tried.stderr.strip()}")
    forks = Forks(folder, "command_child.py", [*alone, "sh", "-c", MOUNT, "sh"])
    yield commands_in(forks, folder)
    forks.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "report", "ship", "force"])
@pytest.mark.parametrize("free", [0, 16, 100, 300])
def test_a_disk_that_fills_up(on_small_disk: Commands, name: str, free: int) -> None:
    """`free`: KiB left on it when the command starts."""
    root = on_small_disk.folder / "disk" / f"{name}-{free}"
    seen = Path(f"/proc/{on_small_disk.forks.process}/root{root}")  # its path outside the namespace
    on_small_disk.start_from(name, root)
    seen.mkdir(exist_ok=True)
    ballast, status = seen.with_name("ballast"), os.statvfs(seen)
    ballast.write_bytes(bytes(max(0, status.f_bavail * status.f_frsize - free * 1024)))
    code = on_small_disk.give(name, root)
    assert code == 2 or free > 16
    check(on_small_disk, name, root, code, os.strerror(errno.ENOSPC), seen)
    ballast.unlink()
    on_small_disk.again(name, root, seen)
    shutil.rmtree(seen)
