"""What the disk refused, told in one line."""

from __future__ import annotations

import errno
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
    if _is_full(error, root):
        return f"{root}: no space left to write; free some, or use a folder on another disk, and run the command again"
    if isinstance(error, OSError) and error.errno in REFUSED and str(error.filename).startswith(str(root)):
        return f"{root}: expected a folder that can be written, found: {error.strerror}; choose another folder"
    return None


def _is_full(error: Exception, root: Path) -> bool:
    """safetensors and torch raise errors of their own for a failed write, so the text and the disk are asked too."""
    if isinstance(error, OSError) and error.errno in FULL:
        return True
    if "No space left" in str(error) or "File too large" in str(error):
        return True
    try:
        return "writ" in str(error).lower() and shutil.disk_usage(root).free < LEAST_FREE
    except OSError:
        return False
