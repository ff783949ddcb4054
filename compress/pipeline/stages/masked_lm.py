"""masked_lm: train a masked-LM head for a teacher that has none, if the general stage or the augmentation uses it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...losses import LOSSES
from ...losses.masked_lm import MaskedTokens
from ...models.checkpoints.folders import save_checkpoint
from ...models.families import FAMILIES
from ...models.masked_lm import new_masked_lm_head
from ...spec.recipe import Stage
from ...spec.stages import Augment, MaskedLm
from ..plan import TRAINING, Draft, Job, Kind
from ..plan.fields import WITHOUT_TEXT, check_text, for_task, seeded_fields
from ..training.info import TrainingInfo
from ..training.text import text_of, with_masking
from .base_teacher import base_teacher, base_teacher_inputs, is_masked_lm, is_random_init
from .tokenize import add_text
from .unscored import unscored_notes

MASKED_LM_TEACHER = "masked-lm"  # the node


def plan(draft: Draft, stage: Stage) -> None:
    spec: MaskedLm = stage.spec
    if spec.enabled == "auto" and (draft.corpus is None or not _is_wanted(draft)):
        return
    if _is_unknown(draft):
        raise draft.fails(
            stage.id,
            f"the masked-LM head of teacher {draft.teacher.card.name}, a {draft.sizes['teacher'].architecture}, is not known; "
            f"leave the stage out with --set {stage.id}.enabled=false",
        )
    if draft.corpus is None:
        raise draft.fails(stage.id, f"{WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false")
    if is_random_init(draft):
        raise draft.fails(stage.id, f"teacher {draft.teacher.card.name} has random weights, which know no words")
    check_text(draft, spec, stage.id, "teacher")
    draft.notes.extend(unscored_notes(stage.id, spec.model_dump(exclude_unset=True)))
    inputs = {"text": add_text(draft, spec.max_tokens)} | base_teacher_inputs(draft)
    draft.add(
        MASKED_LM,
        MASKED_LM_TEACHER,
        "teacher-masked-lm",
        spec,
        seeded_fields(draft, spec, draft.base_seed),
        inputs=inputs,
        outside={"teacher": draft.teacher.identity},
        seed=draft.base_seed,
    )


def _is_unknown(draft: Draft) -> bool:
    return FAMILIES[draft.sizes["teacher"].architecture].heads.masked_lm is None


def _is_wanted(draft: Draft) -> bool:
    if is_random_init(draft) or is_masked_lm(draft) or _is_unknown(draft):
        return False
    specs = [stage.spec for stage in draft.recipe.stages if stage.is_enabled]
    if any(reads_masked_lm(getattr(spec, "losses", ())) for spec in specs):
        return True
    augments = [for_task(draft, (spec,), Augment) for spec in specs if isinstance(spec, Augment)]
    return any(augment.source != "embedding" and augment.masked_lm is None for augment in augments)


def reads_masked_lm(losses: Iterable[Any]) -> bool:
    """Whether one of `losses` reads the output of the teacher's masked-LM head."""
    active_losses = (LOSSES[loss.name] for loss in losses if loss.weight > 0)
    return any(loss.reads == "masked_tokens" and loss.needs_teacher for loss in active_losses)


def run(job: Job[MaskedLm]) -> TrainingInfo:
    """Train the teacher with a new head on plain text, and write its checkpoint. The embedding table is frozen."""
    import torch

    from ...models.masked_head import MaskedLmHeads
    from ...objective import Objective
    from ..training.run import TrainingRun
    from ..training.teacher_targets import set_dropout

    torch.manual_seed(job.node.seed)
    model: Any = new_masked_lm_head(base_teacher(job.plan.teacher, job.inputs))
    model.get_input_embeddings().requires_grad_(False)
    set_dropout(model, 0.0)
    objective = Objective((MaskedTokens(),), masked_lm=MaskedLmHeads(model))
    training = TrainingRun(job, model.base_model, objective)
    text, _ = text_of(job.plan, job.node, job.inputs["text"])
    info = training.train(with_masking(job.plan, job.node, text), None, None)
    save_checkpoint(model.eval(), job.plan.teacher.tokenizer, job.out)
    return info


MASKED_LM = Kind(
    "masked_lm", 3, MaskedLm, run=run, plan=plan, libraries=TRAINING, trains=True, checkpoint=True, trained_model="teacher",
    reads_text=True,
)  # fmt: skip
