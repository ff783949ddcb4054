"""What the disk refused, told in one line."""

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
STATES = {errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTEMPTY}  # what is there; not a disk that fails
LEAST_FREE = 1 << 20


@contextmanager
def as_user_error(root: Path, use: str = "the store") -> Iterator[None]:
    """Turn a disk that is full, fails or must not be written into a `CompressError` that names `root`, which is used as `use`."""
    try:
        yield
    except CompressError:
        raise
    except Exception as error:
        if message := _explain(error, root, use):
            raise CompressError(message) from error
        raise


def _explain(error: Exception, root: Path, use: str) -> str | None:
    if reason := _said(error, FULL) or _no_space(root):
        return (
            f"{root}: cannot write more ({reason}); free some space or choose a folder on another disk, and run again"
        )
    if reason := _said(error, {errno.EIO}):
        where = getattr(error, "filename", None) or root
        return f"{where}: the disk failed ({reason}); see to it or choose a folder on another disk, and run again"
    if not isinstance(error, OSError) or not str(error.filename).startswith(str(root)):
        return None
    if error.errno in REFUSED:
        return f"{root}: cannot be used as {use} ({error.strerror}); expected a folder that can be read and written"
    if error.errno not in STATES | {None}:
        return (
            f"{error.filename}: cannot be read or written now ({error.strerror}); what is finished stays: run again, and if this stays, "
            "see to the disk"
        )
    return None


def _said(error: Exception, codes: set[int]) -> str | None:
    """safetensors and torch raise errors of their own for a failed write, so the text is asked too."""
    if isinstance(error, OSError) and error.errno in codes:
        return error.strerror
    text = str(error)
    return next((reason for code in codes if (reason := os.strerror(code)) in text), None)


def _no_space(root: Path) -> str | None:
    """The disk is asked as well, before what was written so far is removed."""
    try:
        return os.strerror(errno.ENOSPC) if shutil.disk_usage(root).free < LEAST_FREE else None
    except OSError:
        return None
