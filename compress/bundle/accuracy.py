"""The scores of a bundle, measured again on the reported splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tokenizers

from ..errors import CheckFailed, CompressError
from ..runtime.folder import MODEL_FILES, read_settings
from ..tasks import BUILTIN_TASKS, TaskData, check_data_dir, encode, load_task, resolve_task, score
from .document import BundleInfo
from .report import Check, check

POINTS = 0.5  # how far a score may be from the recorded one, either way


@dataclass(frozen=True)
class Measured:
    info: BundleInfo
    data: TaskData

    def checks(self, folder: Path, threads: int | None) -> list[Check]:
        return [check(f"scores {p}", lambda p=p: self._compare(folder, p, threads)) for p in self.info.models]

    def _compare(self, folder: Path, precision: str, threads: int | None) -> str:
        """Every metric of every reported split. CheckFailed: one is off by more than `POINTS`."""
        recorded = self.info.models[precision].scores  # type: ignore[index]
        told, off = [], False
        for name in self.data.reported:
            for metric, points in self._scores(folder, precision, name, threads).items():
                then = recorded.get(name, {}).get(metric)
                told.append(f"{name} {metric} {points:.2f} (recorded {'none' if then is None else f'{then:.2f}'})")
                off |= then is None or not abs(points - then) <= POINTS
        if off:
            raise CheckFailed(f"{', '.join(told)}; expected the recorded scores within {POINTS} points")
        return ", ".join(told)

    def _scores(self, folder: Path, precision: str, split: str, threads: int | None) -> dict[str, float]:
        from ..evaluate import predict_onnx

        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        encoded = encode(tokenizer, self.data.reported[split], self.info.max_length)
        model = folder / "onnx" / MODEL_FILES[precision]
        logits = predict_onnx(model, encoded, read_settings(folder).pad_id, threads=threads)
        return score(self.data.spec, self.data.labels, logits, encoded.labels)

    def notes(self) -> tuple[str, ...]:
        if self.data.fingerprint == self.info.task.data.fingerprint:
            return ()
        return ("the data are not byte for byte those that the bundle was measured on",)


def measured(info: BundleInfo, task: str | None, data_dir: Path | None) -> Measured:
    """The task's data. A name in the bundle is only looked up among the built-in tasks: it may not name a file.

    Raises `CompressError` when the task is not the bundle's, or its data are missing.
    """
    if task is None and info.task.name not in BUILTIN_TASKS:
        raise CompressError(f"task `{info.task.name}` is not built in; give its file with --task")
    spec, folder = resolve_task(task or info.task.name)
    if (spec.kind, len(spec.text)) != (info.task.kind, len(info.text_columns)):
        raise CompressError(
            f"task {spec.name}: expected {info.task.kind} of {len(info.text_columns)} text column(s), the bundle's; "
            f"found {spec.kind} of {len(spec.text)}"
        )
    check_data_dir(data_dir, [spec])
    data = load_task(spec, folder, data_dir)
    if data.labels != info.task.labels:
        raise CompressError(
            f"task {spec.name}: expected the labels {list(info.task.labels)}, found {list(data.labels)}"
        )
    return Measured(info, data)
