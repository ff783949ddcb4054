"""Inject disk faults into the current process: SIGKILL at a chosen touch of the disk, or refused writes from some point on."""

from __future__ import annotations

import _pyio  # pyright: ignore[reportMissingImports]
import builtins
import io
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.fsync = lambda fd: None  # as in conftest.py; the call still counts as a touch of the disk
_TOUCHES = ("os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.scandir", "os.listdir")
_WRITES = (
    "os.mkdir",
    "os.rename",
    "os.link",
)  # operations that a full or broken disk may refuse; deletions are not refused
_MAKES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
Touched = Callable[[bool], None]


def watch(root: Path, touched: Touched) -> None:
    """Call `touched(whether it writes)` before every touch of something below `root`.

    Replaces Python's files with the implementation in Python, so that each single write is seen.
    """

    def below(path: Any) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        name = os.fsdecode(path)
        return name == str(root) or name.startswith(f"{root}/")

    def hook(event: str, arguments: tuple) -> None:
        if event == "open" and below(arguments[0]):
            touched(bool((arguments[2] or 0) & _MAKES))
        elif event in _TOUCHES and any(map(below, arguments[:2])):
            touched(event in _WRITES)
        elif event in ("fcntl.flock", "shutil.rmtree"):
            touched(False)

    def seen(name: str) -> None:
        real = getattr(os, name)

        def call(descriptor: int, *arguments: Any) -> Any:
            if below(Path(f"/proc/self/fd/{descriptor}").readlink()):
                touched(True)
            return real(descriptor, *arguments)

        setattr(os, name, call)

    if place := sys.modules.get("compress.bundle.target"):  # imported where bundles are shipped
        exchange = vars(place)["exchange"]
        vars(place)["exchange"] = lambda one, other: (touched(True), exchange(one, other))[1]
    for name in ("write", "fsync", "sendfile"):
        seen(name)
    builtins.open = io.open = _pyio.open  # type: ignore[assignment]
    sys.addaudithook(hook)


def kill_at(point: int, root: Path) -> None:
    """SIGKILL this process just before its `point`-th touch of anything below `root`."""
    left = [point]

    def touched(writes: bool) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    watch(root, touched)


def fail_at(point: int, code: int, root: Path) -> None:
    """From the `point`-th write below `root` on, refuse every write with `code`, as a full or broken disk does."""
    left = [point]

    def touched(writes: bool) -> None:
        left[0] -= writes
        if left[0] < 0 and writes:
            raise OSError(code, os.strerror(code))

    watch(root, touched)


def count(root: Path) -> list[int]:
    """Return a list that keeps counting the touches below `root` and how many of them were writes."""
    counts = [0, 0]

    def touched(writes: bool) -> None:
        counts[0] += 1
        counts[1] += writes

    watch(root, touched)
    return counts


def limit_files(size: int, *, dies: bool) -> None:
    """Limit files to `size` bytes: the system writes up to there, then refuses (EFBIG) or, if `dies`, kills the process."""
    if dies:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def install(harm: dict[str, Any], root: Path) -> None:
    """Install the faults in `harm`. `touch`: the touch at which to send SIGKILL; `write` and `code`: the write from which to
    fail, and the error; `limit` and `dies`: of the size of files."""
    if "touch" in harm:
        kill_at(harm["touch"], root)
    if "write" in harm:
        fail_at(harm["write"], harm["code"], root)
    if "limit" in harm:
        limit_files(harm["limit"], dies=harm.get("dies", False))
