"""Commands killed at a disk access or during a write: every file under its final name is complete, and running the command again gives
the same result and leaves nothing over."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from command_runs import HARMS, Commands, bundle_in, check_whole
from default_suite import keeping, slow

from compress.bundle.target import recover
from compress.files.atomic import exchange

pytestmark = pytest.mark.end_to_end

POINTS = {"run": 70, "report": 18, "ship": 36, "force": 38, "force in two steps": 38}
CUTS = (1_500, 9_000, 21_000, 40_000)  # bytes after which a write is cut


@pytest.fixture(scope="module")
def exchanges(tmp_path_factory: pytest.TempPathFactory) -> bool:
    folder = tmp_path_factory.mktemp("exchange")
    for name in "ab":
        (folder / name).mkdir()
    return exchange(folder / "a", folder / "b")


def kill(commands: Commands, name: str, root: Path, exchanges: bool, **harm: object) -> int:
    """Kill the command and return its exit code; check what it left, and that running it again succeeds."""
    commands.start_from(name, root)
    code = commands.give(name, root, **harm)
    if name == "force" and exchanges:
        assert (root / "bundle").is_dir(), "at some moment there was no bundle"
    if name.startswith("force"):
        recover(root / "bundle")
        assert bundle_in(root / "bundle") in ("student", "teacher")
    check_whole(root, commands.expected[name])
    commands.again(name, root)
    return code


@pytest.mark.parametrize("name", keeping(HARMS, ("run", "ship", "report")))
def test_a_few_kills(commands: Commands, exchanges: bool, tmp_path: Path, name: str) -> None:
    """One early in the command's disk accesses, and one in the last quarter, where files are renamed into place."""
    count = commands.touches[name]
    for touch in (count // 3, count - 2 - random.Random(name).randrange(count // 4)):
        assert kill(commands, name, tmp_path / str(touch), exchanges, touch=touch) == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMS)
def test_two_hundred_kills(commands: Commands, exchanges: bool, tmp_path: Path, name: str) -> None:
    assert sum(POINTS.values()) == 200
    points = {number * commands.touches[name] // POINTS[name] for number in range(POINTS[name])}
    assert len(points) == POINTS[name]
    for touch in points:
        assert kill(commands, name, tmp_path / str(touch), exchanges, touch=touch) == -signal.SIGKILL


@pytest.mark.parametrize("size", CUTS[:1])
@pytest.mark.parametrize("name", ["run", *slow("force")])
def test_a_kill_in_the_middle_of_a_write(
    commands: Commands, exchanges: bool, tmp_path: Path, name: str, size: int
) -> None:
    """The system kills a process that writes beyond the file size limit."""
    assert kill(commands, name, tmp_path / str(size), exchanges, limit=size, dies=True) == -signal.SIGXFSZ


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMS)
def test_kills_in_the_middle_of_more_writes(commands: Commands, exchanges: bool, tmp_path: Path, name: str) -> None:
    codes = [kill(commands, name, tmp_path / str(size), exchanges, limit=size, dies=True) for size in CUTS]
    assert codes[0] == -signal.SIGXFSZ
    assert set(codes) <= {-signal.SIGXFSZ, 0}
