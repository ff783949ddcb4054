"""What is planned of the teacher, and what is known of it before its fine-tuning."""

from __future__ import annotations

from typing import Any

from ..errors import CompressError
from ..models.dimensions import word_and_position_widths
from ..models.layer_maps import check_losses
from ..models.masked_lm import has_masked_lm_head
from ..spec.stages import Finetune
from .draft import GROWN, PRETRAINED, Draft
from .planning_parts import WITHOUT_TEXT, add_export, add_text, for_task, seeded
from .teachers import TeacherSource


def plan_teacher(draft: Draft, refit: bool) -> None:
    """The teacher first: fine-tuned here, or taken as it is. Its fp32 ONNX is every run's baseline."""
    teacher = draft.teacher
    written = next((stage.spec for stage in draft.recipe.stages if stage.kind == "finetune"), None)
    outside = {"teacher": teacher.identity, "data": draft.task.fingerprint}
    _add_pretrain(draft, refit)
    if teacher.fine_tuned and not refit:
        draft.add("adopt", "teacher", "teacher", None, {}, outside=outside)
    elif written is None:
        raise draft.fails(
            "finetune",
            f"is not in the recipe, and teacher {teacher.card.name} is not fine-tuned: add `- finetune` to its stages, "
            "or give a fine-tuned checkpoint with --teacher DIR",
        )
    else:
        training = for_task(draft, (teacher.card.finetune, written), Finetune)
        described = seeded(draft, training, draft.base_seed)
        draft.add(
            "finetune",
            "teacher",
            "teacher",
            training,
            described,
            inputs=pretrained(draft),
            outside=outside,
            seed=draft.base_seed,
        )
    draft.latest["teacher"] = "teacher"
    export = next(stage.spec for stage in draft.recipe.stages if stage.kind == "export")
    add_export(draft, export)


def _add_pretrain(draft: Draft, refit: bool) -> None:
    """The teacher itself on plain text, where the recipe says so and there is text."""
    stage = next((stage for stage in draft.recipe.stages if stage.kind == "pretrain"), None)
    if stage is None or stage.spec.enabled is False:
        return
    spec, card = stage.spec, draft.teacher.card
    if draft.corpus is None:
        if spec.enabled is True:
            raise draft.fails(stage.id, f"{WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false")
        draft.notes.append(f"{stage.id} is left out: {WITHOUT_TEXT}")
        return
    if draft.teacher.fine_tuned and not refit:
        raise draft.fails(
            stage.id, f"teacher {card.name} is fine-tuned already; say --refit to train it on text and then on the task"
        )
    sizes = draft.sizes["teacher"]
    where = f"recipe {draft.recipe.name}, stage {stage.id}, teacher {card.name}"
    check_losses(spec.losses, student=sizes, teacher=sizes, where=where)
    if counts_words(spec, draft.teacher):
        _check_start(draft, stage.id)
    described = seeded(draft, spec, draft.base_seed)
    inputs, outside = {"text": add_text(draft, spec.max_tokens)}, {"teacher": draft.teacher.identity}
    draft.add("pretrain", PRETRAINED, "teacher", spec, described, inputs=inputs, outside=outside, seed=draft.base_seed)


def counts_words(spec: Any, teacher: TeacherSource) -> bool:
    """Whether random weights begin with what is counted in the text."""
    return spec.start == "cooccurrence" and teacher.folder is None and teacher.small is None


def _check_start(draft: Draft, stage: str) -> None:
    sizes = draft.sizes["teacher"]
    instead = f"say --set {stage}.start=random"
    if sizes.architecture not in ("bert", "roberta"):
        own = f"take recipe {sizes.architecture}-pretrain, or {instead}"
        raise draft.fails(stage, f"start: cooccurrence is for a bert or a roberta, found {sizes.architecture}; {own}")
    try:
        word_and_position_widths(sizes.hidden, sizes.heads)
    except CompressError as error:
        raise draft.fails(stage, f"start: cooccurrence: {error}; {instead}") from None


def pretrained(draft: Draft) -> dict[str, str]:
    """What the fine-tuning takes the teacher from, where that is neither its own checkpoint nor made as it begins."""
    return {PRETRAINED: PRETRAINED} if draft.has(PRETRAINED) else {}


def untuned(draft: Draft) -> dict[str, str]:
    """What a stage that reads the teacher before its fine-tuning takes it from, where that is not its own checkpoint.

    One that grows, and reads no text first, knows what the small one knows: the weights that its fine-tuning begins with.
    """
    if draft.teacher.small is None or draft.has(PRETRAINED):
        return pretrained(draft)
    outside, described = {"teacher": draft.teacher.identity}, {"seed": draft.base_seed}
    draft.add("grow", GROWN, GROWN, None, described, outside=outside, seed=draft.base_seed)
    return {PRETRAINED: GROWN}


def knows_nothing(draft: Draft) -> bool:
    """Whether the teacher, before its fine-tuning, has random weights."""
    return draft.teacher.folder is None and draft.teacher.small is None and not draft.has(PRETRAINED)


def has_head(draft: Draft) -> bool:
    """Whether the teacher, before its fine-tuning, is a masked language model."""
    if draft.has(PRETRAINED):
        spec = next(node.spec for node in draft.nodes if node.id == PRETRAINED)
        return any(loss.name == "masked_lm" and loss.weight > 0 for loss in spec.losses)
    folder = draft.teacher.folder or draft.teacher.small
    return folder is not None and has_masked_lm_head(folder)
