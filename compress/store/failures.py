"""Errors of the disk, explained in one line."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import CompressError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR}
STATES = {errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTEMPTY}  # states of files, not failures of the disk
LEAST_FREE = 1 << 20


@contextmanager
def as_user_error(root: Path, use: str = "the store") -> Iterator[None]:
    """Turn a disk that is full, fails or is not writable into a `CompressError` that names `root` and its `use`."""
    try:
        yield
    except CompressError:
        raise
    except Exception as error:
        if message := _explain(error, root, use):
            raise CompressError(message) from error
        raise


def _explain(error: Exception, root: Path, use: str) -> str | None:
    if reason := _error_reason(error, FULL) or _no_space(root):
        return (
            f"{root}: cannot write more ({reason}); free some space or choose a folder on another disk, and run again"
        )
    if reason := _error_reason(error, {errno.EIO}):
        where = getattr(error, "filename", None) or root
        return f"{where}: the disk failed ({reason}); check it or choose a folder on another disk, and run again"
    if not isinstance(error, OSError) or not str(error.filename).startswith(str(root)):
        return None
    if error.errno in REFUSED:
        return f"{root}: cannot be used as {use} ({error.strerror}); expected a folder that can be read and written"
    if error.errno not in STATES | {None}:
        return (
            f"{error.filename}: cannot be read or written now ({error.strerror}); "
            "what is finished is kept: run again; if this happens again, check the disk"
        )
    return None


def _error_reason(error: Exception, codes: set[int]) -> str | None:
    """Return the reason if the error has one of the codes. The text is searched too: safetensors and torch raise their own errors for a
    failed write."""
    if isinstance(error, OSError) and error.errno in codes:
        return error.strerror
    text = str(error)
    return next((reason for code in codes if (reason := os.strerror(code)) in text), None)


def _no_space(root: Path) -> str | None:
    """Return the reason if the disk is full. It is checked too because what was written so far has not been removed yet."""
    try:
        return os.strerror(errno.ENOSPC) if shutil.disk_usage(root).free < LEAST_FREE else None
    except OSError:
        return None
