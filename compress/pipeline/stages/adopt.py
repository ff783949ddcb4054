"""adopt: use a fine-tuned teacher, or a sentence encoder, as it is. Checks that its labels agree with the task's, and that it is better
than guessing."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from ...errors import CheckFailed
from ...fields import Spec
from ...models.checkpoints.folders import label_fields, load_classifier, load_tokenizer, pad_id, save_checkpoint
from ...models.random_models import random_classifier
from ...models.sentence_encoders.pooling import FIELD
from ...models.sentence_encoders.vector_layers import LAST
from ...spec.kinds import KINDS
from ...tasks import TASK_KINDS, TrainingData, gold_of, headline, score
from ..plan import Context, Draft, Job, Kind, Node, Plan
from ..plan.teachers import TeacherSource
from ..training.labels import label_order, reorder_head
from .base_teacher import PRETRAINED, base_teacher, pretrained_inputs

SEEN_TUNING = (
    "the teacher is fine-tuned already, and has probably seen the tuning split, which is held out of train: what is chosen on "
    "it (checkpoints, α, what stays fp32) may look better there than on new texts; give a split that it has not seen with "
    "--tuning FILE, or fine-tune it again with --refit"
)
SEEN_BY_SEVERAL = (
    "of several teachers, one that has seen the tuning split is more confident there than elsewhere: its "
    "temperature, fitted there, comes out too low, and it weighs too much in the mean"
)
_MOST_CLASSES_PERMUTED = 5
_MOST_POINTS = 100.0
_CLEARLY = 5.0  # points; by chance no other order of a useful teacher's labels is that much better


class Adopt(Spec):
    """No settings: the teacher is used as it is."""


class AdoptInfo(TypedDict):
    """`label_order`: for each class of the task its row in the checkpoint's head, if the head names its classes."""

    tuning_score: float
    label_order: list[int] | None


def add_adopted(draft: Draft, model: str = "teacher") -> None:
    """Add the node of the teacher that plans call `model`."""
    outside = {"teacher": draft.teachers[model].identity, "data": draft.task.fingerprint}
    if not draft.learns_labels:
        source, inputs = draft.teachers[model], pretrained_inputs(draft)
        described: dict[str, Any] = {"kind": draft.task.spec.kind, "pooling": source.pooling[0]}
        described |= {} if source.card.layers == LAST else {"layers": source.card.layers}
        described |= {"seed": draft.base_seed} if _is_drawn(source, inputs) else {}
        draft.add(ADOPT, model, model, Adopt(), described, inputs=inputs, outside=outside, seed=draft.base_seed)
        return
    draft.add(ADOPT, model, model, Adopt(), {}, outside=outside)
    if not draft.task.names_tuning:
        named = SEEN_TUNING.replace("the teacher", f"teacher {draft.teachers[model].card.name}", 1)
        notes = (named, SEEN_BY_SEVERAL) if draft.others else (SEEN_TUNING,)
        draft.notes.extend([note for note in notes if note not in draft.notes])


def check(plan: Plan, node: Node[Adopt]) -> None:
    if plan.learns_labels:
        _order(plan.source_of(node), plan.task.data)


def run(job: Job[Adopt]) -> AdoptInfo:
    """Write the teacher's checkpoint."""
    source = job.plan.source_of(job.node)
    if not KINDS[job.context.kind].learnt:
        return _adopt_encoder(job, source)
    return adopt_teacher(source, job.context, job.out)


def _is_drawn(source: TeacherSource, inputs: Mapping[str, object]) -> bool:
    """Whether a sentence encoder has random weights, or grown ones, which depend on a seed: it is no checkpoint, and was not trained on
    plain text."""
    return source.folder is None and PRETRAINED not in inputs


def _adopt_encoder(job: Job[Adopt], source: TeacherSource) -> AdoptInfo:
    """Write a sentence encoder as it is, or as trained on plain text; random weights are drawn here. Only the score of a checkpoint is
    checked."""
    import torch

    from ..training.initial_teacher import grow_into

    torch.manual_seed(job.node.seed)
    if not _is_drawn(source, job.inputs):
        folder = base_teacher(source, job.inputs)
        own = None if source.card.layers == LAST else source.config
        model: Any = load_classifier(folder, kind=job.context.kind, labels=(), trained=True, config=own)
    else:
        model = random_classifier(source.config, kind=job.context.kind, labels=())
        grow_into(model, source, seed=job.node.seed)
    tokenizer = source.tokenizer
    source.check_unchanged()
    setattr(model.config, FIELD, source.pooling[0])
    if source.folder is None:
        points = _score(model, tokenizer, source, job.context)[0]
    else:
        points = _check_score(model, tokenizer, source, job.context)
    save_checkpoint(model.eval(), tokenizer, job.out)
    return {"tuning_score": points, "label_order": None}


def _order(source: TeacherSource, data: TrainingData) -> tuple[int, ...] | None:
    """See `label_order`."""
    return label_order(source.labels, data.labels, kind=data.spec.kind, where=str(source.folder))


def label_notes(source: TeacherSource, data: TrainingData) -> list[str]:
    """Return a note if the teacher's classes are put in the task's order, or taken in their own because their names say nothing."""
    order, name = _order(source, data), (source.folder or Path()).resolve().name
    own, wanted = list(source.labels), list(data.labels)
    if order is not None and order != tuple(range(len(order))):
        return [f"{name}: classes reordered from {own} to the task's {wanted}"]
    if order is None and KINDS[data.spec.kind].named_labels:
        return [f"{name}: its labels {own} are taken for {wanted}, in this order"]
    return []


def planned_label_notes(plan: Plan) -> list[str]:
    """Return the `label_notes` of all teachers that the plan adopts; reads the data."""
    adopted = [node for node in plan.nodes if node.kind is ADOPT and plan.learns_labels]
    return [note for node in adopted for note in label_notes(plan.source_of(node), plan.task.data)]


def adopt_teacher(source: TeacherSource, context: Context, out: Path) -> AdoptInfo:
    """Check the teacher on the tuning split and write it in the task's label order."""
    folder, data = source.folder or Path(), context.task.data
    order = _order(source, data)
    model: Any = load_classifier(folder, kind=data.spec.kind, labels=data.labels, trained=True)
    tokenizer = load_tokenizer(folder)
    source.check_unchanged()
    for note in label_notes(source, data):
        context.notice(note)
    if order is not None:
        reorder_head(model, list(order))
    points = _check_score(model, tokenizer, source, context)
    for name, value in label_fields(data.spec.kind, data.labels).items():
        setattr(model.config, name, value)
    save_checkpoint(model.eval(), tokenizer, out)
    return {"tuning_score": points, "label_order": list(order) if order else None}


def _score(model: Any, tokenizer: Any, source: TeacherSource, context: Context) -> tuple[float, np.ndarray, np.ndarray]:
    """Return headline points on the tuning split, the outputs there, and the gold labels."""
    from ...models.features.predict import predict_logits

    data = context.task.data
    tuning = context.task.encoded("tuning", tokenizer, data.spec.max_length)
    logits = predict_logits(model, tuning, pad_id(source.config))
    try:
        scores = score(data.spec, data.labels, logits, tuning.labels)
    except CheckFailed as error:  # the outputs are not finite
        raise CheckFailed(f"{source.folder}: {error}: its weights are damaged, or its fine-tuning diverged") from None
    return headline(scores), logits, tuning.labels


def _check_score(model: Any, tokenizer: Any, source: TeacherSource, context: Context) -> float:
    data = context.task.data
    points, logits, gold = _score(model, tokenizer, source, context)
    if not can_judge(data):
        return points
    guess = constant_score(data)
    better = _better_order(logits, gold, data, max(points, guess) + _CLEARLY)
    if is_always_right(points, guess):
        context.notice(f"{source.folder}: {unproven(points)}")
        return points
    if points > guess and not better:
        return points
    hint = (
        f"; with its labels in the order {better[0]} it scores {better[1]:.1f}: set id2label in config.json"
        if better
        else "; --refit fine-tunes it again"
        if KINDS[data.spec.kind].learnt
        else ": give a trained sentence encoder"
    )
    origin = "said to be fine-tuned, " if KINDS[data.spec.kind].learnt else ""
    raise CheckFailed(
        f"{source.folder}: {origin}it scores {points:.1f} on the tuning split of {data.spec.name}, where "
        f"{TASK_KINDS[data.spec.kind].constant_baseline.description} scores {guess:.1f}{hint}"
    )


def can_judge(data: TrainingData) -> bool:
    """Whether scores on the tuning split can tell models apart: one example has no correlation."""
    return not TASK_KINDS[data.spec.kind].scoring.by_correlation or len(data.tuning) > 1


def is_always_right(points: float, guess: float) -> bool:
    """Whether a model with so many headline points is right about everything on a tuning split where a constant answer is, too (`guess`):
    it may know everything or nothing."""
    return min(points, guess) >= _MOST_POINTS


def unproven(points: float) -> str:
    """Return what to say of a model that `is_always_right`."""
    return (
        f"it scores {points:.1f} on the tuning split, as does a constant answer, so nothing shows that it has learnt anything; give a "
        "split with other answers, too, with --tuning FILE"
    )


def constant_score(data: TrainingData) -> float:
    """Return the headline points of the best model that reads no text, e.g. one that always answers with the most frequent class."""
    gold = gold_of(data.spec, data.tuning)
    constant = TASK_KINDS[data.spec.kind].constant_baseline.outputs(data.train.labels, data.labels, gold)
    outputs = np.broadcast_to(constant, (len(gold), constant.shape[-1]))
    return headline(score(data.spec, data.labels, outputs, gold))


def _better_order(
    logits: np.ndarray, gold: np.ndarray, data: TrainingData, bar: float
) -> tuple[list[str], float] | None:
    """Return the order of labels under which the teacher scores over `bar` points, with that score, if there is one."""
    if not KINDS[data.spec.kind].named_labels or len(data.labels) > _MOST_CLASSES_PERMUTED:
        return None
    scored = [
        (headline(score(data.spec, data.labels, logits[:, list(order)], gold)), order)
        for order in permutations(range(len(data.labels)))
    ]
    points, order = max(scored)
    names = [data.labels[order.index(row)] for row in range(len(order))]
    return (names, points) if points > bar else None


ADOPT = Kind("adopt", 1, Adopt, run=run, check=check, libraries=("transformers",), checkpoint=True)
