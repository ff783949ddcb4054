"""general: train the student's encoder on plain text, before the task, against the teacher's or on the text's own labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...losses import LOSSES
from ...losses.features import POOLED
from ...models.checkpoints.folders import load_encoder, save_checkpoint
from ...models.masked_lm import copy_head, load_masked_lm, masked_lm_around
from ...spec.recipe import Stage
from ...spec.stages import General
from ..plan import TRAINING, Draft, Job, Kind
from ..plan.fields import (
    WITHOUT_TEXT,
    check_kind,
    check_student_losses,
    check_text,
    described_student,
    own_checkpoint,
    seeded_fields,
)
from ..training.info import TrainingInfo
from ..training.text import stage_losses, text_of, with_masking
from .base_teacher import base_teacher, base_teacher_inputs, is_masked_lm, is_random_init
from .layer_importance import layer_importance_inputs
from .masked_lm import MASKED_LM_TEACHER, reads_masked_lm
from .projections import described_projections, save_projections
from .tokenize import add_text
from .unscored import unscored_notes

if TYPE_CHECKING:
    from ...models.masked_head import MaskedLmHeads

ENCODER = "encoder"  # the node


def plan(draft: Draft, stage: Stage) -> None:
    spec, teacher = stage.spec, draft.teacher
    if draft.student is None:
        raise draft.fails(
            stage.id,
            "makes the encoder of a new student, and the student here is the teacher, pruned later; name a `student`, or leave the stage "
            f"out with --set {stage.id}.enabled=false",
        )
    if is_random_init(draft):
        problem = (
            f"teacher {teacher.card.name} has random weights before its fine-tuning: there is nothing to learn from it"
        )
    elif draft.corpus is None:
        problem = f"{WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false"
    else:
        _add(draft, stage)
        return
    if spec.enabled is True:
        raise draft.fails(stage.id, problem)
    draft.notes.append(f"{stage.id} distillation is left out: {problem.split(', or')[0]}")
    if draft.student.init == "random" and not is_random_init(draft):
        draft.notes.append(
            f"student {draft.student.name} starts from random weights, which the texts of one task teach little: "
            "without plain text, better choose a student that starts from its teacher's weights (in its card, "
            "init: copy, project or convert)"
        )


def _add(draft: Draft, stage: Stage) -> None:
    spec: General = stage.spec
    learns = any(loss.weight > 0 and LOSSES[loss.name].needs_teacher for loss in spec.losses)
    if learns and draft.learns_labels and draft.teacher.is_fine_tuned(draft.task.spec.kind):
        draft.notes.append(f"{stage.id} distillation learns from the fine-tuned teacher: no other was given")
    if not draft.shares_tokenizer:
        raise draft.fails(
            stage.id,
            f"trains on plain text in the tokens of teacher {draft.teacher.card.name}, and the student has other "
            f"tokens; leave the stage out with --set {stage.id}.enabled=false, or choose recipe logits",
        )
    check_kind(draft, spec, stage.id)
    check_student_losses(draft, spec, stage.id)
    check_text(draft, spec, stage.id, "student", "teacher")
    draft.notes.extend(unscored_notes(stage.id, spec.model_dump(exclude_unset=True)))
    described = (
        seeded_fields(draft, spec, draft.base_seed) | described_student(draft) | described_projections(draft, spec)
    )
    if any(LOSSES[loss.name].reads == "masked_tokens" for loss in spec.losses):
        tied = draft.teacher.config.get("tie_word_embeddings", True)
        described |= {"heads": 2 if tied else 3}  # version of the heads' code; other general stages do not depend on it
    teacher = _masked_lm_inputs(draft, stage) if reads_masked_lm(spec.losses) else base_teacher_inputs(draft)
    inputs = {"text": add_text(draft, spec.max_tokens), **teacher, **layer_importance_inputs(draft, stage.id)}
    outside = {"teacher": draft.teacher.identity}
    outside |= own_checkpoint(draft)
    draft.add(
        GENERAL,
        ENCODER,
        ENCODER,
        spec,
        described,
        inputs=inputs,
        outside=outside,
        seed=draft.base_seed,
        stage=stage.id,
    )


def _masked_lm_inputs(draft: Draft, stage: Stage) -> dict[str, str]:
    """Return the input for a teacher with a masked-LM head: the one that `masked_lm` trained, or the teacher itself."""
    if draft.has(MASKED_LM_TEACHER):
        return {"masked_lm": MASKED_LM_TEACHER}
    if is_masked_lm(draft):
        return base_teacher_inputs(draft)
    raise draft.fails(
        stage.id,
        f"masked_soft_target: teacher {draft.teacher.card.name} has no masked-LM head; put `- masked_lm:` before it, which "
        "trains one, or choose another teacher",
    )


def run(job: Job[General]) -> TrainingInfo:
    """Train the encoder and write its checkpoint, without a head."""
    import torch

    from ..training.initial_student import initial_encoder
    from ..training.run import TrainingRun, student_objective

    plan, node, inputs = job.plan, job.node, job.inputs
    text, _ = text_of(plan, node, inputs["text"])
    torch.manual_seed(node.seed)  # for a pooler that the checkpoint lacks
    folder = inputs["masked_lm"].path if "masked_lm" in inputs else base_teacher(plan.teacher, inputs)
    teacher = load_encoder(folder)
    torch.manual_seed(node.seed)
    student, start = initial_encoder(plan, inputs, teacher, text)
    masked = _heads(job, student, teacher, folder)
    training = TrainingRun(job, student, student_objective(plan, job.spec, masked))
    info = training.train(text if masked is None else with_masking(plan, node, text), teacher, None)
    save_checkpoint(student.eval(), plan.teacher.tokenizer, job.out)
    save_projections(training.objective, job.out)
    if start is not None:
        info["start"] = start
    if POOLED in training.objective.student_features:
        info["pooler_trained"] = True
    info["sequence_length"] = text.length
    return info


def _heads(job: Job[General], student: Any, teacher: Any, folder: Path) -> MaskedLmHeads | None:
    """Return the student's masked-LM head, and its teacher's if a loss reads it: a copied student then starts with the same head."""
    from ...models.masked_head import MaskedLmHeads

    losses = stage_losses(job.node)
    if not any(LOSSES[loss.name].reads == "masked_tokens" for loss in losses):
        return None
    student_model = masked_lm_around(student)
    if not reads_masked_lm(losses):
        return MaskedLmHeads(student_model)
    teacher_model = masked_lm_around(teacher, load_masked_lm(folder))
    card, sizes = job.plan.student, job.plan.sizes
    if card is not None and card.init in ("copy", "prune") and sizes["student"].embedding == sizes["teacher"].embedding:
        copy_head(teacher_model, student_model)
    return MaskedLmHeads(student_model, teacher_model)


GENERAL = Kind(
    "general", 3, General, run=run, plan=plan, libraries=TRAINING, trains=True, checkpoint=True, trained_model="student",
    reads_text=True,
)  # fmt: skip
