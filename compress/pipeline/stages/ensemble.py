"""ensemble: several teachers as one, the mean of their calibrated probabilities over the training examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from ...errors import CompressError, with_article
from ...fields import Spec
from ...files.arrays import zeros_file
from ...losses import LOSSES
from ...spec.stages import Distill
from ...store import Artifact
from ...tasks import TASK_KINDS, gold_of, headline, score, span_tables
from ..plan import Draft, Job, Kind
from ..plan.fields import answer_losses, loss_on_states
from ..plan.teachers import ENSEMBLE
from .teacher_logits import add_teacher_logits, calibrated_logits, node_name

_FILE = "logits.npy"
_ROWS = 1 << 20  # rows of a table that are averaged at a time


class Ensemble(Spec):
    """`max_length`: tokens of a text, by each teacher's tokenizer; for a window of a question, by the student's."""

    max_length: int


class EnsembleInfo(TypedDict):
    """`tuning_score` in headline points. `null_score_diff_threshold`: for questions, the margin by which no answer must beat the best span,
    chosen on the tuning split."""

    teachers: int
    tuning_score: float
    null_score_diff_threshold: NotRequired[float]


def check_several(draft: Draft) -> None:
    """Raise `CompressError` if several teachers have no student, or if their answers have no mean."""
    names = ", ".join(teacher.card.name for teacher in draft.teachers.values())
    if draft.student is None:
        raise CompressError(
            f"recipe {draft.recipe.name} makes no student from a card, which several teachers ({names}) are for: "
            "give one --teacher, or choose a recipe with a student, such as logits"
        )
    kind = draft.task.spec.kind
    if TASK_KINDS[kind].ensemble is None:
        raise CompressError(
            f"task {draft.task.spec.name}: answers of several teachers ({names}) to {with_article(kind)} task "
            "cannot be averaged; give one --teacher"
        )


def check_differs(draft: Draft, model: str) -> None:
    """Raise `CompressError` if the teacher `model`, just planned, equals an earlier one, so that it has no node of its own."""
    if draft.has(model):
        return
    name = draft.teachers[model].card.name
    raise CompressError(
        f"teacher {name} is given twice: an earlier teacher has the same weights and settings, so their mean "
        "is the same; leave one out. For two trainings of one card, run it with another --seed first, and "
        "give the folder that `compress checkpoint RUN --stage teacher -o DIR` writes"
    )


def check_answers_alone(draft: Draft, spec: Distill, stage: str) -> None:
    """Raise `CompressError` for a loss that reads more of a teacher than its answers, if there are several."""
    beyond = loss_on_states(spec)
    if not draft.others or beyond is None:
        return
    raise draft.fails(
        stage,
        f"{beyond} compares states inside one teacher, and there are {len(draft.teachers)}; from several, "
        f"only their mean answers are learnt ({answer_losses(draft)}): choose recipe logits, or give one "
        "--teacher",
    )


def ensemble_inputs(draft: Draft, spec: Distill, stage: str) -> dict[str, str]:
    """Return what a distill stage reads of several teachers: the ensemble's table. Empty for a single teacher, or if no loss reads one; the
    ensemble is planned in the latter case too, because results report its scores."""
    if not draft.others:
        return {}
    name = _add(draft, spec.max_length or draft.task.spec.max_length, stage)
    reads = any(loss.weight > 0 and LOSSES[loss.name].needs_teacher for loss in spec.losses)
    return {ENSEMBLE: name} if reads else {}


def _add(draft: Draft, max_length: int, stage: str) -> str:
    """Add the ensemble's node. The mean does not depend on the teachers' order: they are sorted by key, so that runs of any order share
    it."""
    name = node_name(draft, ENSEMBLE, max_length)
    nodes = [add_teacher_logits(draft, model, max_length, stage=stage) for model in draft.teachers]
    logits = sorted(nodes, key=draft.key_of)
    inputs = {str(number): node for number, node in enumerate(logits, 1)}
    spec, outside = Ensemble(max_length=max_length), {"data": draft.task.fingerprint}
    draft.add(ENSEMBLE_KIND, name, ENSEMBLE, spec, {}, inputs=inputs, outside=outside, stage=stage)
    return name


def run(job: Job[Ensemble]) -> EnsembleInfo:
    """Write float32 [training example, output]: logarithms of the mean probabilities; for regression the mean scores; for questions a table
    of the student's windows (`span_tables`)."""
    data = job.context.task.data
    ensemble = TASK_KINDS[data.spec.kind].ensemble
    if ensemble is None:
        raise RuntimeError("several teachers are only planned for a kind of task whose outputs have a mean")
    teachers = [calibrated_logits(artifact.path, artifact.info["temperature"]) for artifact in job.inputs.values()]
    _save_mean(job.out / _FILE, ensemble.mean, [each["train"] for each in teachers])
    tuning, threshold = ensemble.mean([each["tuning"] for each in teachers]), None
    if data.tuning.labels_spans:
        tuning, threshold = _decide_answers(job, tuning)
    points = headline(score(data.spec, data.labels, tuning, gold_of(data.spec, data.tuning)))
    info: EnsembleInfo = {"teachers": len(teachers), "tuning_score": points}
    if threshold is not None:
        info["null_score_diff_threshold"] = threshold
    return info


def _decide_answers(job: Job[Ensemble], table: np.ndarray) -> tuple[np.ndarray, float | None]:
    """Return the answers [question, output] of the tuning split's table, decided at the best threshold, and that threshold; None if every
    question has an answer."""
    from ..training.held_out import best_threshold

    task = job.context.task
    windows: Any = task.encoded("tuning", job.plan.source("student").tokenizer, task.spec.max_length)
    outputs = span_tables.collect_outputs(table, windows)
    threshold = float(best_threshold(task.data, outputs, windows.labels))
    return windows.decided(outputs, threshold), threshold if windows.impossible else None


def _save_mean(path: Path, mean: Callable[[Sequence[np.ndarray]], np.ndarray], tables: Sequence[np.ndarray]) -> None:
    """Write the mean of tables of one shape as float32, row block by row block."""
    out = zeros_file(path, tables[0].shape)
    for start in range(0, len(out), _ROWS):
        out[start : start + _ROWS] = mean([each[start : start + _ROWS] for each in tables])
    out.flush()


def table(artifact: Artifact) -> np.ndarray:
    """Return the table that `run` wrote, float32 [training example, output], or [token, 2], memory-mapped."""
    return np.load(artifact.path / _FILE, mmap_mode="r", allow_pickle=False)


ENSEMBLE_KIND = Kind("ensemble", 2, Ensemble, run=run)
