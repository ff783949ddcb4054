"""finetune: train the teacher on the task's labels."""

from __future__ import annotations

from ...losses.hard_label import HardLabel
from ...models.checkpoints.folders import load_classifier
from ...models.random_models import random_classifier
from ...spec.recipe import Stage
from ...spec.stages import Finetune
from ..plan import TRAINING, Draft, Job, Kind
from ..plan.fields import described_threshold, fields_for_task, seeded_fields
from ..training.info import TrainingInfo
from .base_teacher import PRETRAINED, base_teacher, pretrained_inputs
from .choose import add_best


def plan(draft: Draft, stage: Stage, model: str = "teacher") -> None:
    """Plan the fine-tuning of the teacher that plans call `model`; only the first one may be pre-trained on plain text."""
    teacher = draft.teachers[model]
    fields = fields_for_task(draft, (teacher.card.finetune, stage.spec), Finetune)
    inputs = pretrained_inputs(draft) if model == "teacher" else {}
    outside = {"teacher": teacher.identity, "data": draft.task.fingerprint}

    def add(name: str, spec: Finetune) -> str:
        described = seeded_fields(draft, spec, draft.base_seed) | described_threshold(draft)
        return draft.add(FINETUNE, name, model, spec, described, inputs=inputs, outside=outside, seed=draft.base_seed)

    add_best(draft, model, fields, add, stage="finetune")


def run(job: Job[Finetune]) -> TrainingInfo:
    """Fine-tune from random weights, the base checkpoint, or the pre-trained one, and write the checkpoint."""
    import torch

    from ...objective import Objective
    from ..training.initial_teacher import grow_into
    from ..training.run import TrainingRun

    source = job.plan.source_of(job.node)
    torch.manual_seed(job.node.seed)
    if source.folder is not None or PRETRAINED in job.inputs:
        model = load_classifier(
            base_teacher(source, job.inputs), kind=job.context.kind, labels=job.context.labels, trained=False
        )
    else:
        model = random_classifier(source.config, kind=job.context.kind, labels=job.context.labels)
        grow_into(model, source, seed=job.node.seed)
    tokenizer = source.tokenizer
    source.check_unchanged()
    return TrainingRun(job, model, Objective((HardLabel(),), kind=job.context.kind)).on_task(tokenizer, None)


FINETUNE = Kind("finetune", 3, Finetune, run=run, plan=plan, libraries=TRAINING, trains=True, checkpoint=True)
