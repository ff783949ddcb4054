"""Open other people's files only if they are regular: reading a pipe could block forever, and a device may have no end."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from ..errors import CompressError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_regular(path: Path, what: str) -> BufferedReader:
    """Open a file for reading; links to files are followed. CompressError: it is not a file, or cannot be read; `what` was
    expected."""
    try:
        # O_NONBLOCK: a pipe without a writer opens at once, and is detected below.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise CompressError(f"{path}: expected {what}, found nothing") from None
    except (OSError, ValueError) as error:
        kind = _file_kind(path)
        reason = f"found {kind}" if kind else f"it cannot be read: {getattr(error, 'strerror', None) or error}"
        raise CompressError(f"{path}: expected {what}, {reason}") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise CompressError(f"{path}: expected {what}, found {_KINDS.get(stat.S_IFMT(mode), 'no file')}")
    return os.fdopen(descriptor, "rb")


def check_regular(path: Path, what: str) -> None:
    """Raise `CompressError` if the path is of something else than a file, such as a pipe. Nothing is opened, and what does not exist, or
    cannot be read, is left to the reader."""
    kind = _file_kind(path)
    if kind is not None:
        raise CompressError(f"{path}: expected {what}, found {kind}")


def _file_kind(path: Path) -> str | None:
    """Return what a path is, if not a file: a socket, for example."""
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):
        return None


def read_regular(path: Path, what: str, most: int) -> bytes:
    """Return the whole file. CompressError: as `open_regular`, or it has more than `most` bytes, a multiple of 1 MiB."""
    with open_regular(path, what) as file:
        try:
            data = file.read(most + 1)
        except OSError as error:
            raise CompressError(f"{path}: expected {what}, it cannot be read: {error.strerror}") from None
    if len(data) > most:
        raise CompressError(f"{path}: expected {what} of at most {most >> 20} MiB, found more")
    return data
