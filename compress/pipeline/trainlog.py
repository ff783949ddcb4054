"""The training log: one JSON line per optimizer step, and what the listener sees."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from .context import Listener

if TYPE_CHECKING:
    from ..training import StepReport


class TrainLog:
    """Appends to `path`. After an interruption the lines past the resumed step are dropped as it goes on.

    `tokens` and `examples` are those trained on since this start, by all processes; padding is not counted.
    """

    def __init__(self, path: Path, listener: Listener) -> None:
        self._path = path
        self._listener = listener
        self._file = None
        self.tokens = 0
        self.examples = 0
        self._seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def tokens_per_second(self) -> float | None:
        """Training throughput since this start, of all processes: real tokens, padding and evaluation not counted."""
        return self.tokens / self._seconds if self._seconds else None

    def write(self, report: StepReport) -> None:
        if self._file is None:
            self._drop_from(report.step)
            self._file = self._path.open("a", encoding="utf-8", buffering=1)  # a kill loses no finished line
        self.tokens += report.tokens
        self.examples += report.examples
        self._seconds += report.seconds
        self._file.write(json.dumps(asdict(report)) + "\n")
        self._listener.step(report)

    def copy_to(self, path: Path) -> None:
        if self._path.exists():
            shutil.copyfile(self._path, path)

    def _drop_from(self, step: int) -> None:
        """Keep the lines of steps before `step`; a line cut by a kill is dropped with them."""
        if not self._path.exists():
            return
        kept = []
        for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                if json.loads(line)["step"] < step:
                    kept.append(line)
            except (json.JSONDecodeError, KeyError):
                continue
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
        temporary.replace(self._path)
