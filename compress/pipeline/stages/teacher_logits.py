"""teacher_logits: the logits of one of several teachers on every training example, and the temperature that calibrates them.

For questions these are the teacher's logits at the tokens of the student's windows, in which the student is trained.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ...fields import Spec
from ...models.checkpoints.folders import load_classifier, load_tokenizer, pad_id
from ...spec.kinds import KINDS
from ...tasks import TASK_KINDS, EncodedSpans, divide_by_temperature, headline, score, span_tables
from ..plan import TRAINING, Draft, Job, Kind
from .augment import AUGMENTED

_FILE = "logits.npz"
_SPLITS = ("train", "tuning")


class TeacherLogits(Spec):
    """`max_length`: tokens of a text, by the teacher's tokenizer; for a window of a question, by the student's."""

    max_length: int


class TeacherLogitsInfo(TypedDict):
    """`temperature` divides the logits, None if the kind of task has none; `tuning_score` in headline points, for the teacher's answers
    with its own tokenizer; `examples`: the number predicted, for questions of windows."""

    temperature: float | None
    tuning_score: float
    examples: int


def add_teacher_logits(draft: Draft, model: str, max_length: int, *, stage: str) -> str:
    """Add the node for the fine-tuned teacher `model` and the distill stage `stage`; return its id."""
    name = node_name(draft, f"{model}-logits", max_length)
    inputs = {"teacher": model} | ({"augmented": AUGMENTED} if draft.has(AUGMENTED) else {})
    spec, outside = TeacherLogits(max_length=max_length), {"data": draft.task.fingerprint}
    if KINDS[draft.task.spec.kind].unit == "question":
        outside["windows"] = (draft.pretrained or draft.teacher).vocabulary
    draft.add(TEACHER_LOGITS, name, model, spec, spec.model_dump(), inputs=inputs, outside=outside, stage=stage)
    return name


def node_name(draft: Draft, name: str, max_length: int) -> str:
    """Return the node's name, with `max_length` if it is not the task's: distill stages may cut texts at different lengths."""
    return name if max_length == draft.task.spec.max_length else f"{name}-{max_length}"


def run(job: Job[TeacherLogits]) -> TeacherLogitsInfo:
    """Write the teacher's raw logits over the training examples, copies included, and over the tuning split; for questions they are already
    calibrated."""
    from ...models.features.predict import predict_logits
    from ...training import make_accelerator
    from ..training.run import training_examples

    context, length, folder = job.context, job.spec.max_length, job.inputs["teacher"].path
    model: Any = load_classifier(folder, kind=context.kind, labels=context.labels, trained=True)
    model.to(make_accelerator(context.precision).device)
    tokenizer, pad, data = load_tokenizer(folder), pad_id(model.config.to_dict()), context.task.data
    held = context.task.encoded("tuning", tokenizer, context.task.spec.max_length)
    tuning = predict_logits(model, held, pad)
    points = headline(score(data.spec, data.labels, tuning, held.labels))
    if isinstance(held, EncodedSpans):
        temperature, count = _write_windows(job, model, pad)
        return {"temperature": temperature, "tuning_score": points, "examples": count}
    examples = training_examples(context.task, tokenizer, length, job.inputs.get("augmented"))
    train = predict_logits(model, examples, pad, partial(context.listener.progress, "answered by the teacher"))
    np.savez(job.out / _FILE, allow_pickle=False, train=train, tuning=tuning)
    ensemble = TASK_KINDS[context.kind].ensemble
    fit = None if ensemble is None else ensemble.fit_temperature
    temperature = None if fit is None else fit(tuning, held.labels)
    return {"temperature": temperature, "tuning_score": points, "examples": len(examples)}


def _write_windows(job: Job[TeacherLogits], model: Any, pad: int) -> tuple[float, int]:
    """Write a calibrated table of the student's windows for each split (`span_tables`); return the temperature, and the number of train's
    windows."""
    from ...models.features.predict import put_token_logits
    from ..training.run import training_examples

    task, length, student = job.context.task, job.spec.max_length, job.plan.source("student")
    windows: dict[str, Any] = {
        "train": training_examples(task, student.tokenizer, length, job.inputs.get("augmented")),
        "tuning": task.encoded("tuning", student.tokenizer, task.spec.max_length),
    }
    tables = {split: span_tables.create_table(_table(job.out, split), encoded) for split, encoded in windows.items()}
    teacher = job.plan.teachers[job.node.model]
    for split, encoded in windows.items():
        read = length if split == "train" else task.spec.max_length
        parts = None if teacher.shares_tokenizer(student) else teacher.parts_of(encoded, read)
        put_token_logits(tables[split], model, encoded, pad, parts=parts)
    temperature = span_tables.fit_span_temperature(tables["tuning"], windows["tuning"])
    for split, encoded in windows.items():
        span_tables.calibrate(tables[split], encoded, temperature)
        tables[split].flush()
    return temperature, len(windows["train"])


def calibrated_logits(folder: Path, temperature: float | None) -> dict[str, np.ndarray]:
    """Return `train` and `tuning` -> logits [example, output], divided by the temperature; for questions the tables, memory-mapped."""
    if not (folder / _FILE).exists():
        return {split: np.load(_table(folder, split), mmap_mode="r", allow_pickle=False) for split in _SPLITS}
    with np.load(folder / _FILE, allow_pickle=False) as file:
        return {split: divide_by_temperature(file[split], temperature) for split in _SPLITS}


def _table(folder: Path, split: str) -> Path:
    return folder / f"{split}.npy"


TEACHER_LOGITS = Kind("teacher_logits", 2, TeacherLogits, run=run, libraries=TRAINING)
