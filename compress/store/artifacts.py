"""The store: find an artefact by key, or build it once, whole or not at all."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from ..files.atomic import sync
from . import manifest
from .failures import as_user_error

Make = Callable[[Path, Path], dict[str, Any]]
STORE = ".store"  # beside the runs whose artefacts it has


@dataclass(frozen=True)
class Artifact:
    """A verified artefact. Its files may be read and must not be changed."""

    path: Path
    key: str
    info: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    describe: dict[str, Any] = field(default_factory=dict)


class Store:
    """Layout: `<key>/` artefacts; `.building/<key>/{out,work}` unfinished; `.locks/<key>`.

    `on_notice` gets a line when this process waits for another one or rebuilds a damaged artefact.
    """

    def __init__(self, root: Path, on_notice: Callable[[str], None] | None = None) -> None:
        self.root = root
        self.last_problem: str | None = None
        self._notice = on_notice or (lambda line: None)
        self._seen: dict[str, tuple[Any, Artifact]] = {}
        self._swept = False
        self._claimed: set[str] = set()

    @classmethod
    def of_runs(cls, folder: Path, on_notice: Callable[[str], None] | None = None) -> Self:
        """The store of the runs in `folder`."""
        return cls(folder / STORE, on_notice)

    def path(self, key: str) -> Path:
        """The path of the artefact `key`, existing or not."""
        return self.root / key

    def work(self, key: str) -> Path:
        """The folder for checkpoints of the unfinished artefact `key`, existing or not."""
        return self.root / ".building" / key / "work"

    def has(self, key: str) -> bool:
        """Whether the artefact `key` exists; its bytes are not verified."""
        return self.path(key).is_dir()

    def find(self, key: str) -> Artifact | None:
        """Return the artefact, every byte of it verified, or None.

        Changes nothing on disk, so that plans can look artefacts up and a read-only store works; `build` replaces a damaged artefact.
        `last_problem` then says what was wrong, else it is None.
        """
        self.last_problem = None
        folder = self.path(key)
        with as_user_error(self.root):
            try:
                return self._verify_artifact(folder, key) if self.has(key) else None
            except (manifest.DamagedError, FileNotFoundError) as problem:
                self.last_problem = f"{folder}: {problem}"
                return None

    @contextmanager
    def claimed(self, key: str) -> Iterator[bool]:
        """Within the block, no other process builds the artefact `key`. Yields False, holding nothing, if another process is building it
        now."""
        lock = FileLock(self.root / ".locks" / key)
        with as_user_error(self.root):
            self.sweep()
            try:
                lock.acquire(timeout=0)
            except Timeout:
                lock = None
        if lock is None:
            yield False
            return
        self._claimed.add(key)
        try:
            yield True
        finally:
            self._claimed.discard(key)
            lock.release()

    def build(self, key: str, make: Make, *, describe: dict[str, Any], anew: bool = False) -> Artifact:
        """Return the artefact `key`, made by `make(out, work) -> info` unless it exists. `anew`: make it in any case, and replace the
        existing one when it is done.

        `out` starts empty and becomes the artefact. `work` survives an interruption, for checkpoints, and is deleted when the artefact is
        done. Other processes that build the same key wait and then share the result. `describe` (its `label` or `kind` names the artefact
        in notices; `make` may add to it) and `info` are JSON values for the manifest. Whatever `make` raises passes through and leaves no
        artefact; a full disk, or a folder that cannot be written, becomes a `CompressError`.
        """
        if (artifact := self.find(key)) and not anew:
            return artifact
        with as_user_error(self.root):
            self.sweep()
            with self._lock(key, describe):
                artifact = self.find(key)
                return artifact if artifact and not anew else self._make(key, make, describe)

    def _make(self, key: str, make: Make, describe: dict[str, Any]) -> Artifact:
        building, work = self.root / ".building" / key, self.work(key)
        out = building / "out"
        if self.last_problem:
            self._notice(f"{self.last_problem}; building it again")
            self._discard(self.path(key), building)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        work.mkdir(exist_ok=True)
        try:
            with as_user_error(self.root):
                started = time.perf_counter()
                info = make(out, work)
                manifest.write(out, key, describe, info, time.perf_counter() - started)
                if self.has(key):
                    self._discard(self.path(key), building)
                out.rename(self.path(key))
                sync(self.root)
        except BaseException:
            shutil.rmtree(out, ignore_errors=True)
            raise
        shutil.rmtree(building, ignore_errors=True)
        return _artifact_of(self.path(key), key, manifest.read(self.path(key), key))

    def _verify_artifact(self, folder: Path, key: str) -> Artifact:
        """Verify the artefact. Files are not hashed again in the same process while no file's status has changed."""
        status = sorted(
            (name, s.st_size, s.st_ino, s.st_mtime_ns, s.st_ctime_ns) for name, s in manifest.contents(folder).items()
        )
        seen, artifact = self._seen.get(key, (None, None))
        if artifact is not None and seen == status:
            return artifact
        document = manifest.read(folder, key)
        manifest.verify(folder, document["files"])
        artifact = _artifact_of(folder, key, document)
        newest = max(max(entry[3:]) for entry in status)
        if newest < time.time_ns() - 2_000_000_000:  # a later change is sure to show, even on coarse clocks
            self._seen[key] = (status, artifact)
        return artifact

    @contextmanager
    def _lock(self, key: str, describe: dict[str, Any]) -> Iterator[None]:
        """Held by one process per key; the system frees it when its holder dies."""
        if key in self._claimed:
            yield
            return
        with self.claimed(key) as is_ours:
            if is_ours:
                yield
                return
        label = describe.get("label") or describe.get("kind") or key
        self._notice(f"waiting for another process that is building {label}")
        with FileLock(self.root / ".locks" / key).acquire(poll_interval=0.2):
            yield

    def _discard(self, folder: Path, building: Path) -> None:
        """Remove the folder after renaming it, so that a crash cannot leave it half removed under its own name."""
        trash = building / "trash"
        building.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(trash, ignore_errors=True)
        folder.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)

    def sweep(self) -> None:
        """Once per process: remove what dead processes left, except `work` that can be resumed."""
        (self.root / ".locks").mkdir(parents=True, exist_ok=True)
        building = self.root / ".building"
        building.mkdir(exist_ok=True)
        if self._swept:
            return
        self._swept = True
        for leftover in building.iterdir():
            with suppress(Timeout, OSError), FileLock(self.root / ".locks" / leftover.name, timeout=0):
                for part in leftover.iterdir():
                    if part.name != "work" or self.has(leftover.name):
                        shutil.rmtree(part, ignore_errors=True)
                leftover.rmdir()  # fails, as intended, while it contains `work`


def _artifact_of(folder: Path, key: str, document: dict[str, Any]) -> Artifact:
    return Artifact(folder, key, document["info"], document["seconds"], document["describe"])
