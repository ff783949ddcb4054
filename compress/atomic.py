"""Files and folders that are whole or absent: made beside their place, forced to the disk, renamed.

A process that is killed leaves what it was making under a name that tells whose it is; whoever writes there next removes it.
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

PART, BUILDING, OLD = "part", "building", "old"  # a file, a folder, a folder that makes room for a new one
_NAME = re.compile(r"\.(.+)\.([0-9a-f]{6})-([0-9]{1,10})-[0-9a-f]{8}\.(part|building|old)", re.DOTALL)
_DAY = 86_400.0  # seconds after which what nobody touched is nobody's, whatever process has that id by now
_EXCHANGE, _CWD = 2, -100  # RENAME_EXCHANGE and AT_FDCWD of Linux
_NO_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new name beside `path` to write a file to; afterwards it takes the place of `path`, or nothing is left of it.

    No two processes or threads get the same name: the last of several writers wins, and readers see one whole file or another.
    An `OSError` names `path`.
    """
    sweep(path.parent)
    part = beside(path, PART)
    try:
        yield part
        sync(part)
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(part)):
            error.filename = str(path)
        raise


def write_bytes(path: Path, content: bytes) -> None:
    """`path` with this content, whole or as it was."""
    with replacing(path) as part:
        part.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """`path` with this text in UTF-8, whole or as it was."""
    write_bytes(path, text.encode("utf-8"))


def sync(path: Path) -> None:
    """Force a file or a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def beside(path: Path, kind: str) -> Path:
    """A name of this process's beside `path`; `kind`: `PART`, `BUILDING` or `OLD`."""
    return path.with_name(f".{path.name}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.{kind}")


@cache
def _machine() -> str:
    """Where process ids mean what they mean here: the machine and, on Linux, the namespace of the ids."""
    space = 0
    with suppress(OSError):
        space = Path("/proc/self/ns/pid").stat().st_ino
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:6]


def sweep(folder: Path) -> None:
    """Remove the files that dead processes did not finish in `folder`; nobody else's, and none of a living process."""
    for path in [path for _, path in abandoned(folder, PART)]:
        with suppress(OSError):
            path.unlink()


def abandoned(folder: Path, kind: str) -> list[tuple[Path, Path]]:
    """(place, leftover) for each name of `beside` in `folder` whose process is gone, the youngest first."""
    found = list[tuple[float, Path, Path]]()
    with suppress(OSError):
        for path in folder.iterdir():
            match = _NAME.fullmatch(path.name)
            if match is None or match[4] != kind:
                continue
            with suppress(OSError):  # its owner may just have finished
                changed = path.lstat().st_mtime
                if time.time() - changed > _DAY or (match[2] == _machine() and not _alive(int(match[3]))):
                    found.append((changed, folder / match[1], path))
    return [(place, path) for _, place, path in sorted(found, reverse=True)]


def _alive(process: int) -> bool:
    """On Windows, where asking would end the process, taken for granted."""
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
    """Swap two folders or files in one step. False where the system or the disk cannot, and nothing was done.

    At no moment is either name absent (Linux, renameat2). `OSError`: what else fails.
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
