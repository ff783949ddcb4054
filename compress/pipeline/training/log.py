"""The training log: one JSON line per optimizer step, also sent to the listener; and the state of a training. Needs no torch."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from safetensors import SafetensorError, safe_open

from ...files.atomic import write_text
from ..plan.context import Listener

if TYPE_CHECKING:
    from ...training import StepReport


STATE = "state"  # the folder beside a log in which the loop saves its checkpoints
_FIELDS = {"step", "tokens", "examples", "seconds"}


@dataclass(frozen=True)
class Totals:
    """Totals of a training over all processes: real tokens, examples, and the seconds of the steps, without evaluation."""

    tokens: int
    examples: int
    seconds: float


def saved_step(work: Path) -> int | None:
    """Return the step at which a training with its log in `work` resumes; None if nothing was saved."""
    try:
        with safe_open(work / STATE / "state.safetensors", framework="numpy") as file:
            return int(json.loads(file.metadata()["progress"])["step"])
    except (OSError, SafetensorError):
        return None


class TrainLog:
    """Appends to `path`. When a training resumes, lines past the resumed step are dropped."""

    def __init__(self, path: Path, listener: Listener) -> None:
        self._path = path
        self._listener = listener
        self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def totals(self) -> Totals:
        """Totals of every logged step, including those before an interruption."""
        steps = [step for _, step in self._complete_lines()]
        return Totals(**{name: sum(step[name] for step in steps) for name in ("tokens", "examples", "seconds")})

    def write(self, report: StepReport) -> None:
        if self._file is None:
            self._drop_from(report.step)
            self._file = self._path.open("a", encoding="utf-8", buffering=1)  # a kill loses no finished line
        self._file.write(json.dumps(asdict(report)) + "\n")
        self._listener.step(report)

    def copy_to(self, path: Path) -> None:
        if self._path.exists():
            shutil.copyfile(self._path, path)

    def _drop_from(self, step: int) -> None:
        """Keep the lines of steps before `step`; a line cut by a kill is dropped with them."""
        if not self._path.exists():
            return
        kept = [line for line, taken in self._complete_lines() if taken["step"] < step]
        write_text(self._path, "".join(f"{line}\n" for line in kept))

    def _complete_lines(self) -> list[tuple[str, dict[str, Any]]]:
        """Return every complete line, with its parsed step."""
        lines = []
        text = self._path.read_text(encoding="utf-8", errors="replace") if self._path.exists() else ""
        for line in text.splitlines():
            try:
                step = json.loads(line)
            except json.JSONDecodeError:
                continue
            if isinstance(step, dict) and step.keys() >= _FIELDS:
                lines.append((line, step))
        return lines
