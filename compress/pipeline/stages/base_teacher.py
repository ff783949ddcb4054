"""The teacher before its fine-tuning: what is known of it, and where a stage takes it from."""

from __future__ import annotations

from pathlib import Path

from ...models.masked_lm import has_masked_lm_head
from ...spec.stages import Pretrain
from ..plan import Draft, Inputs
from ..plan.teachers import TeacherSource
from .grow import GROWN, add_grown

PRETRAINED = (
    "pretrained"  # the node that pre-trains the teacher on plain text, and the stages' input role for its checkpoint
)


def pretrained_inputs(draft: Draft) -> dict[str, str]:
    """Inputs of the fine-tuning: the pre-trained teacher, if a stage makes one; otherwise it starts from the checkpoint or from new
    weights."""
    return {PRETRAINED: PRETRAINED} if draft.has(PRETRAINED) else {}


def base_teacher_inputs(draft: Draft) -> dict[str, str]:
    """Inputs of a stage that reads the teacher before its fine-tuning, if that is not its own checkpoint.

    A teacher that grows without being pre-trained here has the small model's knowledge: the weights that its fine-tuning begins with.
    """
    if draft.teacher.grown_from is None or draft.has(PRETRAINED):
        return pretrained_inputs(draft)
    add_grown(draft)
    return {PRETRAINED: GROWN}


def base_teacher(teacher: TeacherSource, inputs: Inputs) -> Path:
    """Return the checkpoint of the teacher before its fine-tuning: pre-trained here, or as it is."""
    folder = inputs[PRETRAINED].path if PRETRAINED in inputs else teacher.folder
    if folder is None:
        raise RuntimeError(
            "a stage that reads the teacher before its fine-tuning is only planned where that has learnt"
        )
    return folder


def is_random_init(draft: Draft) -> bool:
    """Whether the teacher, before its fine-tuning, has random weights."""
    return draft.teacher.is_random_init and not draft.has(PRETRAINED)


def is_masked_lm(draft: Draft) -> bool:
    """Whether the teacher, before its fine-tuning, is a masked language model."""
    for node in draft.nodes:
        if isinstance(node.spec, Pretrain):
            return any(loss.name == "masked_lm" and loss.weight > 0 for loss in node.spec.losses)
    folder = draft.teacher.folder or draft.teacher.grown_from
    return folder is not None and has_masked_lm_head(folder)
