"""teacher_logits: what one of several teachers says of every training example, and the temperature that calibrates it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ...fields import Spec
from ...models.checkpoints import load_classifier, load_tokenizer, pad_id
from ...tasks import TASK_KINDS, divided, headline, score
from ..plan import TRAINING, Draft, Job, Kind
from .augment import AUGMENTED

_FILE = "logits.npz"


class TeacherLogits(Spec):
    """`max_length`: tokens of a text, in the teacher's own tokens."""

    max_length: int


class TeacherLogitsInfo(TypedDict):
    """`temperature` divides the logits, None where the task's kind knows none; `tuning_score` in headline points."""

    temperature: float | None
    tuning_score: float
    examples: int


def add_teacher_logits(draft: Draft, model: str, max_length: int, *, stage: str) -> str:
    """Of the fine-tuned teacher `model`, for the distill stage `stage`; the id of the node."""
    name = named(draft, f"{model}-logits", max_length)
    inputs = {"teacher": model} | ({"augmented": AUGMENTED} if draft.has(AUGMENTED) else {})
    spec, outside = TeacherLogits(max_length=max_length), {"data": draft.task.fingerprint}
    draft.add(TEACHER_LOGITS, name, model, spec, spec.model_dump(), inputs=inputs, outside=outside, stage=stage)
    return name


def named(draft: Draft, name: str, max_length: int) -> str:
    """Distill stages may cut texts at different lengths; one that is not the task's is in the name."""
    return name if max_length == draft.task.spec.max_length else f"{name}-{max_length}"


def run(job: Job[TeacherLogits]) -> TeacherLogitsInfo:
    """-> the teacher's logits over the training examples, copies included, and over the tuning split, as the model gives them."""
    from ...models.predict import predict_logits
    from ...training import make_accelerator
    from ..training.run import training_examples

    context, length, folder = job.context, job.spec.max_length, job.inputs["teacher"].path
    model: Any = load_classifier(folder, kind=context.kind, labels=context.labels, trained=True)
    model.to(make_accelerator(context.precision).device)
    tokenizer, pad = load_tokenizer(folder), pad_id(model.config.to_dict())
    examples = training_examples(context.task, tokenizer, length, job.inputs.get("augmented"))
    train = predict_logits(model, examples, pad)
    held = context.task.encoded("tuning", tokenizer, length)
    tuning = predict_logits(model, held, pad)
    np.savez(job.out / _FILE, allow_pickle=False, train=train, tuning=tuning)
    data = context.task.data
    fit = TASK_KINDS[context.kind].temperature
    return {
        "temperature": None if fit is None else fit(tuning, held.labels),
        "tuning_score": headline(score(data.spec, data.labels, tuning, held.labels)),
        "examples": len(examples),
    }


def calibrated(folder: Path, temperature: float | None) -> dict[str, np.ndarray]:
    """`train` and `tuning` -> logits [example, output], divided by the temperature."""
    with np.load(folder / _FILE, allow_pickle=False) as file:
        return {split: divided(file[split], temperature) for split in ("train", "tuning")}


TEACHER_LOGITS = Kind("teacher_logits", 1, TeacherLogits, run, libraries=TRAINING)
