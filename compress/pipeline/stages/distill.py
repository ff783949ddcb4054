"""distill: train the student against the fine-tuned teacher."""

from __future__ import annotations

from typing import Any

from ...models.checkpoints.folders import load_classifier, load_tokenizer
from ...spec.recipe import Stage
from ...spec.stages import Distill
from ...spec.stages.finetune import lists
from ..plan import TRAINING, Draft, Job, Kind
from ..plan.fields import (
    check_student_losses,
    described_student,
    described_threshold,
    fields_for_task,
    for_task,
    own_checkpoint,
    seeded_fields,
)
from ..plan.teachers import ENSEMBLE
from ..plan.vectors import vector_losses
from ..training.info import TrainingInfo
from .augment import AUGMENTED
from .ensemble import check_answers_alone, ensemble_inputs, table
from .general import ENCODER
from .layer_importance import layer_importance_inputs
from .projections import described_projections, load_projections, save_projections
from .prune.prune import PRUNE
from .token_vectors import token_vector_inputs
from .unscored import unscored_notes

_SEVERAL = (
    "{name}: card {card} lists values for `finetune` to choose among, and a student is trained with one; "
    "give it with --set {stage}.{name}=NUMBER"
)


def plan(draft: Draft, stage: Stage) -> None:
    card = draft.teacher.card if draft.pretrained is None else draft.pretrained.card
    usual = (card.finetune, card.distill) if draft.pretrained is None else (card.finetune,)
    layers = (*usual, stage.spec)
    if names := lists(fields_for_task(draft, layers, Distill)):
        raise draft.fails(stage.id, _SEVERAL.format(name=names[0], stage=stage.id, card=card.name))
    if draft.student is None and "student" not in draft.latest:
        raise draft.fails(
            stage.id,
            "trains the model that a `prune` stage before it makes, and each of those is switched off; leave one on, or leave this one out "
            f"too with --set {stage.id}.enabled=false",
        )
    spec = vector_losses(draft, for_task(draft, layers, Distill), stage.id)
    check_answers_alone(draft, spec, stage.id)
    pruned = any(node.model == "student" and node.kind is PRUNE for node in draft.nodes)
    check_student_losses(draft, spec, stage.id, pruned=pruned)
    draft.notes.extend(unscored_notes(stage.id, stage.spec.for_task(draft.task.spec.name), spec.losses))
    name = "student" if stage.id == "distill" else stage.id
    inputs = {"teacher": draft.latest["teacher"]}
    inputs |= {"student": draft.latest["student"]} if "student" in draft.latest else {}
    inputs |= {"encoder": ENCODER} if draft.has(ENCODER) and "student" not in draft.latest else {}
    inputs |= {"augmented": AUGMENTED} if draft.has(AUGMENTED) else {}
    inputs |= ensemble_inputs(draft, spec, stage.id)
    inputs |= token_vector_inputs(draft, stage.id) | layer_importance_inputs(draft, stage.id)
    described = seeded_fields(draft, spec, draft.seed) | described_student(draft) | described_threshold(draft)
    described |= described_projections(draft, spec)
    outside = {"data": draft.task.fingerprint} | own_checkpoint(draft)
    draft.add(DISTILL, name, "student", spec, described, inputs=inputs, outside=outside, stage=stage.id)
    draft.advance("student", name)


def run(job: Job[Distill]) -> TrainingInfo:
    """Train the student, from its last checkpoint or started from the teacher, and write its checkpoint."""
    import torch

    from ..training.initial_student import initial_student
    from ..training.run import TrainingRun, student_objective

    folder = job.inputs["teacher"].path
    teacher = load_classifier(folder, kind=job.context.kind, labels=job.context.labels, trained=True)
    teacher_tokenizer = load_tokenizer(folder)
    torch.manual_seed(job.node.seed)
    student, start = initial_student(job, teacher, teacher_tokenizer)
    student_tokenizer = job.plan.pretrained.tokenizer if job.plan.pretrained is not None else teacher_tokenizer
    answers = table(job.inputs[ENSEMBLE]) if ENSEMBLE in job.inputs else None
    objective = student_objective(job.plan, job.spec)
    load_projections(objective, job.inputs)
    training = TrainingRun(job, student, objective, answers=answers, unsharded_because=_why_unsharded(student))
    from_tables = job.plan.shares_tokenizer or answers is not None
    info = training.on_task(student_tokenizer, teacher, None if from_tables else teacher_tokenizer)
    save_projections(objective, job.out)
    if start is not None:
        info["start"] = start
    return info


def _why_unsharded(student: Any) -> str | None:
    """Return why every process must hold the whole student; None if it may be sharded."""
    from ...models.sentence_encoders.layer_mix import learnt_mix

    if not student.config.num_hidden_layers:
        return "it has no layers to shard"
    return None if learnt_mix(student) is None else "the weights of its layer mix belong to no layer"


DISTILL = Kind(
    "distill", 3, Distill, run=run, plan=plan, libraries=TRAINING, trains=True, checkpoint=True, trained_model="student"
)
