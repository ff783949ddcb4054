"""Harm at a chosen touch of the disk, in the process that installs it: SIGKILL, or writes that the system refuses from then on."""

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

os.fsync = lambda fd: None  # as in conftest.py; its touch of the disk is seen
_TOUCHES = ("os.mkdir", "os.rename", "os.link", "os.remove", "os.rmdir", "os.scandir", "os.listdir")
_WRITES = ("os.mkdir", "os.rename", "os.link")  # what a disk may refuse; what only removes is not refused
_MAKES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
Touched = Callable[[bool], None]


def watch(root: Path, touched: Touched) -> None:
    """Call `touched(whether it writes)` before every touch of something below `root`.

    Python's files become those that are written in Python, so that each of their writes is seen.
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

    if place := sys.modules.get("compress.bundle.place"):  # imported where bundles are shipped
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
    """From the `point`-th write below `root` on, every one is refused with `code`, as on a disk that is full or broken."""
    left = [point]

    def touched(writes: bool) -> None:
        left[0] -= writes
        if left[0] < 0 and writes:
            raise OSError(code, os.strerror(code))

    watch(root, touched)


def count(root: Path) -> list[int]:
    """How many touches there have been below `root`, and how many of them were writes: kept up to date."""
    counts = [0, 0]

    def touched(writes: bool) -> None:
        counts[0] += 1
        counts[1] += writes

    watch(root, touched)
    return counts


def limit_files(size: int, *, dies: bool) -> None:
    """No file may grow beyond `size` bytes: the system writes up to there, then refuses (EFBIG) or, if it `dies`, kills."""
    if dies:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def install(harm: dict[str, Any], root: Path) -> None:
    """What `harm` asks for: `touch`, at which touch SIGKILL comes; `write` and `code`, from which write on which error comes;
    `limit` and `dies`, of the size of files."""
    if "touch" in harm:
        kill_at(harm["touch"], root)
    if "write" in harm:
        fail_at(harm["write"], harm["code"], root)
    if "limit" in harm:
        limit_files(harm["limit"], dies=harm.get("dies", False))
