"""Measure the scores of a bundle again on the reported splits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...errors import CheckFailed, CompressError
from ...runtime.folder import MODEL_FILES, read_settings, read_tokenizer
from ...tasks import (
    BUILTIN_TASKS,
    OwnFiles,
    ReportedData,
    check_data_dir,
    encode,
    headline_of,
    load_reported,
    own_task,
    reported_gold,
    reported_scores,
    resolve_task,
)
from ..document import BundleInfo
from .report import Step

SCORES = "scores"  # prefix of the steps' names
POINTS = 0.5  # allowed difference from the recorded score, either way
ROUNDING = 1e-9  # points


@dataclass(frozen=True)
class Measured:
    info: BundleInfo
    data: ReportedData

    def steps(self, folder: Path, threads: int | None) -> Iterator[Step]:
        for precision in self.info.models:
            name = f"onnx/{MODEL_FILES[precision]}"
            yield Step(f"{SCORES} {precision}", name, lambda p=precision: self._compare(folder, p, threads))

    def _compare(self, folder: Path, precision: str, threads: int | None) -> str:
        """Compare every metric of every reported split. CheckFailed: one is off by more than `POINTS` and than one answer
        can change."""
        recorded = self.info.models[precision].scores  # type: ignore[index]
        lines, off = [], False
        outputs = self.data.gathered(
            {name: self._outputs(folder, precision, name, threads) for name in self.data.splits}
        )
        gold = reported_gold(self.data)
        for name, scores in reported_scores(self.data, outputs, gold).items():
            for metric, points in scores.items():
                then = recorded.get(name, {}).get(metric)
                lines.append(f"{name} {metric} {points:.2f} (recorded {'none' if then is None else f'{then:.2f}'})")
                off |= then is None or not self._is_near(metric, points, then, outputs[name], gold[name])
        if off:
            other = ", or the weight of one answer" if self.data.spec.kind == "classification" else ""
            raise CheckFailed(f"{', '.join(lines)}; expected the recorded scores within {POINTS} points{other}")
        return ", ".join(lines)

    def _is_near(self, metric: str, points: float, then: float, outputs: np.ndarray, gold: np.ndarray) -> bool:
        """Whether the score is within `POINTS`, or for classification within what one different answer changes."""
        off = abs(points - then)
        if off <= POINTS or self.data.spec.kind != "classification":
            return off <= POINTS
        return off <= self._largest_change(metric, outputs, gold) + ROUNDING

    def _largest_change(self, metric: str, outputs: np.ndarray, gold: np.ndarray) -> float:
        """Return the most points that one text's answer can change, if its second choice is taken instead.

        Texts with the same label, first and second choice change the same, so one of each is tried.
        """
        measure = headline_of(self.data.spec, self.data.labels, (metric,))
        now, changes = measure(outputs, gold), []
        choices = np.argsort(-outputs, axis=1, kind="stable")[:, :2]
        for text in np.unique(np.column_stack([gold, choices]), axis=0, return_index=True)[1]:
            changed = outputs.copy()
            changed[text, choices[text]] = outputs[text, choices[text][::-1]]
            changes.append(abs(measure(changed, gold) - now))
        return max(changes)

    def _outputs(self, folder: Path, precision: str, split: str, threads: int | None) -> np.ndarray:
        from ...evaluate import predict_onnx

        settings = read_settings(folder)
        tokenizer = read_tokenizer(folder / "tokenizer.json", settings)
        encoded = encode(tokenizer, self.data.splits[split], self.info.max_length)
        model = folder / "onnx" / MODEL_FILES[precision]
        return predict_onnx(model, encoded, settings.pad_id, threads=threads)

    def notes(self) -> tuple[str, ...]:
        if self.data.fingerprint == self.info.task.data.fingerprint:
            return ()
        return ("the data, or how the task reads them, are not exactly those that the bundle was measured on",)


def load_measured(
    info: BundleInfo,
    task: str | None,
    data_dir: Path | None,
    own: OwnFiles | None = None,
    tuning: Path | None = None,
) -> Measured:
    """Load the task's data. A name in the bundle is only looked up among the built-in tasks: it must not name a file.

    Raises `CompressError` when the task is not the bundle's, is scored in another way, or its data are missing.
    """
    if task is not None and own is not None:
        raise CompressError(f"--train names data, and --task {task} has data of its own; leave one of the two out")
    if own is None and task is None and info.task.name not in BUILTIN_TASKS:
        raise CompressError(
            f"task `{info.task.name}` is not built in; give its file with --task, or its data with --train and --dev"
        )
    if own is None:
        spec, folder = resolve_task(task or info.task.name)
    elif own.max_length in (None, info.max_length):
        spec, folder = own_task(replace(own, max_length=info.max_length))
    else:
        raise CompressError(
            f"--max-length: expected {info.max_length}, what the bundle reads, found {own.max_length}; leave it out"
        )
    if (spec.kind, len(spec.text)) != (info.task.kind, len(info.text_columns)):
        raise CompressError(
            f"task {spec.name}: expected {info.task.kind} of {len(info.text_columns)} text column(s), the bundle's; "
            f"found {spec.kind} of {len(spec.text)}"
        )
    if unknown := [metric for metric in spec.metrics if metric not in info.task.metrics]:
        raise CompressError(
            f"task {spec.name}: metrics: expected some of {', '.join(info.task.metrics)}, of which the bundle records scores; "
            f"found {', '.join(unknown)}"
        )
    check_data_dir(data_dir, [spec])
    data = load_reported(spec, folder, data_dir, tuning)
    if data.labels != info.task.labels:
        raise CompressError(
            f"task {spec.name}: expected the labels {list(info.task.labels)}, found {list(data.labels)}"
        )
    return Measured(info, data)
