"""The folder of a search, which its processes share: each enters it, and the last to leave removes it if nothing was measured."""

from __future__ import annotations

import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..errors import CompressError
from .identity import IDENTITY, claim
from .journal import JOURNAL
from .latency import TABLE

_LOCKS, _FOLDER_LOCK = "locks", "folder"
_NEW = "new"  # in the locks: every process in the folder entered it after it was made, or beside one that did
_PROCESS = "process-"  # prefix of the lock that a process holds while it is in the folder


class SharedFolder:
    """`folder`, claimed for the search of this `identity`. Raises `CompressError` if it belongs to another."""

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self._folder, self._locks = folder, folder / _LOCKS
        self._missing_parents = [parent for parent in folder.absolute().parents if not parent.exists()]
        self._own = FileLock(self._locks / f"{_PROCESS}{uuid.uuid4().hex}")
        with self._locked():
            if claim(folder, identity):
                (self._locks / _NEW).touch()
            elif not self._is_used():
                (self._locks / _NEW).unlink(missing_ok=True)
            self._own.acquire()

    def remove(self) -> None:
        """Leave the folder, and remove it, unless it is from an earlier call or another process is still in it."""
        with self._locked():
            self._own.release()
            if not (self._locks / _NEW).exists() or self._is_used():
                return
            # Others may keep files of theirs beside these.
            own = [self._folder / name for name in (IDENTITY, JOURNAL, TABLE)]
            for path in [*own, *(path for path in self._locks.iterdir() if path.name != _FOLDER_LOCK)]:
                path.unlink(missing_ok=True)
            (self._locks / _FOLDER_LOCK).unlink()  # last: a process that waits for it makes the folder anew
        with suppress(OSError):  # it has made it by now, or the folder has other files
            for place in (self._locks, self._folder, *self._missing_parents):
                place.rmdir()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the folder's lock, in a folder that exists: another process may remove it while this one waits."""
        lock = FileLock(self._locks / _FOLDER_LOCK)
        while not lock.is_locked:
            try:
                self._locks.mkdir(parents=True, exist_ok=True)
                lock.acquire()
            except (FileNotFoundError, FileExistsError):
                if path := next(filter(_is_no_folder, (self._folder, self._locks)), None):
                    raise CompressError(f"{path}: expected a folder, found none; move it, or choose --out") from None
        try:
            yield
        finally:
            lock.release()

    def _is_used(self) -> bool:
        """Whether another process is in the folder. Removes the locks of those that have left it."""
        for path in self._locks.glob(f"{_PROCESS}*"):
            lock = FileLock(path)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                return True
            lock.release()
            path.unlink(missing_ok=True)
        return False


def _is_no_folder(path: Path) -> bool:
    """Whether there is something else in its place. A folder that is removed meanwhile, by another process, is none of these."""
    try:
        mode = path.lstat().st_mode  # once: its kind now, and whether it is there
    except FileNotFoundError:
        return False
    return not stat.S_ISDIR(mode) and not path.is_dir()
