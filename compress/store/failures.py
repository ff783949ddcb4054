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
LEAST_FREE = 1 << 20


@contextmanager
def as_user_error(root: Path) -> Iterator[None]:
    """Turn a full disk, or a store that cannot be written, into a `CompressError` that names `root`."""
    try:
        yield
    except CompressError:
        raise
    except Exception as error:
        if message := _explain(error, root):
            raise CompressError(message) from error
        raise


def _explain(error: Exception, root: Path) -> str | None:
    if reason := _full(error, root):
        return (
            f"{root}: cannot write more ({reason}); free some space or choose a folder on another disk, and run again"
        )
    if isinstance(error, OSError) and error.errno in REFUSED and str(error.filename).startswith(str(root)):
        return f"{root}: cannot be used as the store ({error.strerror}); expected a folder that can be read and written"
    return None


def _full(error: Exception, root: Path) -> str | None:
    """safetensors and torch raise errors of their own for a failed write, so the text and the disk are asked too
    (before what was written so far is removed)."""
    if isinstance(error, OSError) and error.errno in FULL:
        return error.strerror
    text = str(error)
    for code in FULL:
        if os.strerror(code) in text:
            return os.strerror(code)
    try:
        return os.strerror(errno.ENOSPC) if shutil.disk_usage(root).free < LEAST_FREE else None
    except OSError:
        return None
