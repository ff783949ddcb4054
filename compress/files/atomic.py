"""Files and folders that are complete or absent: made beside their destination, synced to the disk, renamed.

A killed process leaves its unfinished work under a name that identifies the process; whoever writes there next removes it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

PART, BUILDING, OLD = "part", "building", "old"  # a file, a folder, an old folder moved aside for a new one
_NAME = re.compile(r"\.(.+)\.([0-9a-f]{6})-([0-9]{1,10})-[0-9a-f]{8}\.(part|building|old)", re.DOTALL)
_LONGEST = 255  # bytes of a file's name, on the usual file systems
_DAY = 86_400.0  # seconds after which an untouched leftover is abandoned, whatever process has that id now
_EXCHANGE, _CWD = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a new name beside `path` to write a file to. Afterwards the file replaces `path`, or is removed on an error.

    No two processes or threads get the same name: the last of several writers wins, and readers always see a complete file.
    An `OSError` names `path`.
    """
    with _unfinished(path) as part:
        yield part
        sync(part)
        part.replace(path)


@contextmanager
def creating(path: Path) -> Iterator[Path]:
    """As `replacing`, but without replacing anything: the first of several writers wins. `FileExistsError`, at the end: `path`
    exists."""
    with _unfinished(path) as part:
        yield part
        sync(part)
        try:
            os.link(part, path)
        except FileExistsError:
            raise
        except OSError:  # a disk without hard links; what else is wrong fails again
            _move_without_link(part, path)
        else:
            part.unlink()


def _move_without_link(part: Path, path: Path) -> None:
    """Move `part` to `path`, which an empty file keeps from others for a moment."""
    path.touch(exist_ok=False)
    try:
        part.replace(path)
    except BaseException:
        path.unlink()
        raise


@contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """Yield a new name beside `path`; on an error, remove the file of that name. An `OSError` names `path`."""
    sweep(path.parent)
    part = temporary_path(path, PART)
    try:
        yield part
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(part)):
            error.filename = str(path)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path` atomically."""
    with replacing(path) as part:
        part.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` in UTF-8, atomically."""
    write_bytes(path, text.encode("utf-8"))


def sync(path: Path) -> None:
    """Force a file or a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_path(path: Path, kind: str) -> Path:
    """Return a new name beside `path` that identifies this process; `kind`: `PART`, `BUILDING` or `OLD`. A `PART` has only the beginning
    of a name that is too long with what is added: nobody reads it there."""
    own = f".{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.{kind}"
    name = os.fsencode(path.name)[: _LONGEST - len(own) - 1].decode(errors="ignore") if kind == PART else path.name
    return path.with_name(f".{name}{own}")


@cache
def _machine() -> str:
    """Identify where process ids mean the same: the machine and, on Linux, the PID namespace."""
    space = 0
    with suppress(OSError):
        space = Path("/proc/self/ns/pid").stat().st_ino
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:6]


def sweep(folder: Path) -> None:
    """Remove the files that dead processes left unfinished in `folder`; nobody else's, and none of a living process."""
    for path in [path for _, path in abandoned_paths(folder, PART)]:
        with suppress(OSError):
            path.unlink()


def abandoned_paths(folder: Path, kind: str) -> list[tuple[Path, Path]]:
    """Return (destination, leftover) for each name of `temporary_path` in `folder` whose process is gone, the youngest first."""
    leftovers = list[tuple[float, Path, Path]]()
    with suppress(OSError):
        for path in folder.iterdir():
            match = _NAME.fullmatch(path.name)
            if match is None or match[4] != kind:
                continue
            with suppress(OSError):  # its owner may just have finished
                changed = path.lstat().st_mtime
                if time.time() - changed > _DAY or (match[2] == _machine() and not _alive(int(match[3]))):
                    leftovers.append((changed, folder / match[1], path))
    return [(place, path) for _, place, path in sorted(leftovers, reverse=True)]


def _alive(process: int) -> bool:
    """Whether a process is alive; assumed on Windows, where asking would end it."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def exchange(one: Path, other: Path) -> bool:
    """Swap two folders or files in one step. Return False if the system or the disk cannot, and nothing was done.

    At no moment is either name absent (Linux, renameat2). `OSError`: any other failure.
    """
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    if rename(_CWD, os.fsencode(one), _CWD, os.fsencode(other), ctypes.c_uint(_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))
