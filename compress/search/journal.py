"""Optuna's study over a journal in one folder, which outlives its processes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

if TYPE_CHECKING:
    import optuna

JOURNAL = "journal.log"


def open_study(folder: Path, objectives: int) -> optuna.Study:
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    class Lock(JournalFileOpenLock):
        """The system releases this lock when its holder dies, so nobody waits for a dead process."""

        def __init__(self) -> None:
            super().__init__(str(folder / JOURNAL))
            self._lock = FileLock(folder / "locks" / "journal")

        def acquire(self) -> bool:
            self._lock.acquire()
            _cut_torn(folder / JOURNAL)
            return True

        def release(self) -> None:
            self._lock.release()

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with quiet():
        storage = optuna.storages.JournalStorage(JournalFileBackend(str(folder / JOURNAL), lock_obj=Lock()))
        return optuna.create_study(
            storage=storage,
            study_name="search",
            directions=[optuna.study.StudyDirection.MINIMIZE] * objectives,
            load_if_exists=True,
        )


def _cut_torn(journal: Path) -> None:
    """Remove a last line that a full disk or a killed process left incomplete: with another line after it, no line could be
    read."""
    if not journal.exists() or not journal.stat().st_size:
        return
    with journal.open("rb+") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)


@contextmanager
def quiet() -> Iterator[None]:
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        warnings.simplefilter("ignore", UserWarning)  # about a constraint that a killed process had set
        yield
