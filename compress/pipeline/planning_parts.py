"""What planners share: fields of a task, what keys hold, the text, an export."""

from __future__ import annotations

from typing import Any

from ..errors import CompressError
from ..models.layer_maps import check_losses, matched_layers
from ..models.students import CONVERSION
from ..spec.losses import BlockSpread
from ..spec.stages import Export, Losses, PerTask
from .draft import Draft

WITHOUT_TEXT = "no plain text was given; say --corpus PATH"


def for_task(draft: Draft, layers: tuple[PerTask, ...], model: type[Any]) -> Any:
    """Fields of `layers`, later over earlier, those of the task over the rest; the model's defaults below."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer.for_task(draft.task.spec.name)
    if "max_length" in model.model_fields:
        merged = {"max_length": draft.task.spec.max_length, **merged}
    return model.model_validate(merged)


def seeded(draft: Draft, spec: Any, seed: int) -> dict[str, Any]:
    return {**spec.model_dump(mode="json", exclude={"per_task"}), "seed": seed, "precision": draft.precision}


def described_student(draft: Draft) -> dict[str, Any]:
    """What keys hold of the student: its card, and how a conversion is computed."""
    if draft.student is None:
        return {}
    conversion = {"conversion": CONVERSION} if draft.student.init == "convert" else {}
    return {"student": draft.student.model_dump(mode="json", exclude={"title"}), **conversion}


def add_text(draft: Draft, max_tokens: int | None) -> str:
    """The text in tokens of the teacher's vocabulary; stages that read as much of it share it."""
    name = f"text-{max_tokens}" if max_tokens else "text"
    if draft.corpus is not None and not draft.has(name):
        outside = {"text": draft.corpus.fingerprint, "tokenizer": draft.teacher.vocabulary}
        draft.add("tokenize", name, "text", max_tokens, {"max_tokens": max_tokens}, outside=outside, seed=0)
    return name


def add_export(draft: Draft, spec: Export) -> None:
    model = draft.current
    described = {**spec.model_dump(mode="json"), "task": draft.task.spec.name}
    draft.add("export", f"{model}-fp32", model, spec, described, inputs={model: draft.latest[model]})


def check_stage_losses(draft: Draft, spec: Any, stage: str) -> None:
    teacher, student = draft.sizes["teacher"], draft.sizes["student"]
    where = f"recipe {draft.recipe.name}, stage {stage}, student {draft.student.name if draft.student else ''}"
    check_losses(spec.losses, student=student, teacher=teacher, where=where)
    try:
        matched_layers(spec, student_layers=student.layers, teacher_layers=teacher.layers)
    except CompressError as error:
        raise draft.fails(stage, str(error)) from None


def pull_of(spec: Losses) -> BlockSpread | None:
    return next((loss for loss in spec.losses if isinstance(loss, BlockSpread) and loss.weight > 0), None)
