"""Helpers shared by the planners of stages: a stage's fields for a task, and what keys contain of them."""

from __future__ import annotations

from typing import Any, TypeVar

from ...corpus.batches import SHORTEST
from ...errors import CompressError, with_article
from ...fields import Spec
from ...files.paths import expand_home
from ...losses import LOSSES
from ...models.families import FAMILIES
from ...models.layer_maps import check_losses, matched_layers
from ...models.students import CONVERSION
from ...spec.kinds import KINDS
from ...spec.stages import Losses, PerTask
from ...spec.stages.training import OnText
from ...store import hash_file
from ...tasks import TASK_KINDS
from .draft import Draft

P = TypeVar("P", bound=PerTask)
WITHOUT_TEXT = "no plain text was given; add it with --corpus PATH"


def for_task(draft: Draft, layers: tuple[PerTask, ...], model: type[P]) -> P:
    """Merge the fields of `layers` into a `model`: later layers win over earlier ones, a task's fields over the rest; missing fields take
    the model's defaults."""
    return model.model_validate(fields_for_task(draft, layers, model))


def fields_for_task(draft: Draft, layers: tuple[PerTask, ...], model: type[PerTask]) -> dict[str, Any]:
    """Return the merged fields that `for_task` builds the model from."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer.for_task(draft.task.spec.name)
    return {"max_length": draft.task.spec.max_length, **merged} if "max_length" in model.model_fields else merged


def seeded_fields(draft: Draft, spec: Spec, seed: int) -> dict[str, Any]:
    fields = {**spec.model_dump(mode="json", exclude={"per_task"}), "seed": seed, "precision": draft.precision}
    return fields | ({"dropouts": "all"} if fields.get("dropout") and _lacks_dropouts(draft) else {})


def _lacks_dropouts(draft: Draft) -> bool:
    """Whether a model's class leaves dropouts out at its config's rate, which earlier versions did not turn on."""
    sources = [*draft.teachers.values(), *([draft.pretrained] if draft.pretrained else [])]
    optional = [(source.config, FAMILIES[source.config["model_type"]].optional_dropout) for source in sources]
    return any(dropout is not None and not config.get(dropout.rate, dropout.default) for config, dropout in optional)


def named_file_hash(field: str, word: str) -> str:
    """Return the hash of the file `word` that the `field` of a stage names. Raises `CompressError` naming the field."""
    try:
        return hash_file(expand_home(word))
    except CompressError as error:
        raise CompressError(f"{field}: {error}") from None


def described_threshold(draft: Draft) -> dict[str, Any]:
    """What keys contain of the decision threshold, if the task has one; for questions this depends on the training split."""
    kind = draft.task.spec.kind
    if TASK_KINDS[kind].fit_threshold is None:
        return {}
    if KINDS[kind].unit != "question":
        return {"threshold": "tuning, by label"}
    return {"threshold": "tuning"} if draft.task.data.train.unanswerable else {}


def described_student(draft: Draft) -> dict[str, Any]:
    """What keys contain of the student: its card, and the version of a conversion. For a pre-trained one see `own_checkpoint`."""
    if draft.student is None:
        return {}
    if draft.pretrained is not None:
        pooling = {} if draft.learns_labels else {"pooling": draft.pretrained.pooling[0]}
        return {"student": {"init": draft.student.init}, **pooling}
    conversion = {"conversion": CONVERSION} if draft.student.init == "convert" else {}
    return {"student": draft.student.model_dump(mode="json", exclude={"title"}), **conversion}


def own_checkpoint(draft: Draft) -> dict[str, str]:
    """Hashes, for keys, of the checkpoint that a pre-trained student starts from."""
    return {} if draft.pretrained is None else {"pretrained": draft.pretrained.identity}


def check_student_losses(draft: Draft, spec: Losses, stage: str, *, pruned: bool = False) -> None:
    """Raise `CompressError` for losses that need what this student or its teacher lacks, and for a layer map with other layers. `pruned`:
    the run removes heads from the student first."""
    if not draft.shares_tokenizer:
        _check_logits_alone(draft, spec, stage)
    teacher, student = draft.sizes["teacher"], draft.sizes["student"]
    name = draft.student.name if draft.student is not None else "the pruned teacher"
    where = f"recipe {draft.recipe.name}, stage {stage}, student {name}"
    check_losses(spec.losses, student=student, teacher=teacher, where=where, pruned=pruned)
    check_layer_map(draft, spec, stage, "student", "teacher")


def check_kind(draft: Draft, spec: Losses, stage: str) -> None:
    """Raise `CompressError` for a loss that does not exist for tasks of this kind."""
    kind, name = draft.task.spec.kind, draft.task.spec.name
    for loss in spec.losses:
        kinds = LOSSES[loss.name].kinds
        if kinds is not None and kind not in kinds and loss.weight > 0:
            raise draft.fails(
                stage,
                f"loss {loss.name} is for {' and '.join(kinds)} tasks, and {name} is {with_article(kind)} task; leave it out",
            )


def answer_losses(draft: Draft) -> str:
    """Names of the losses on answers that exist for tasks of this kind."""
    kind = draft.task.spec.kind
    losses = {name: loss for name, loss in LOSSES.items() if loss.kinds is None or kind in loss.kinds}
    return ", ".join(name for name, loss in losses.items() if loss.reads == "logits")


def loss_on_states(spec: Losses) -> str | None:
    """Return the first weighted loss that compares more of two models than their answers."""
    return next((loss.name for loss in spec.losses if loss.weight > 0 and LOSSES[loss.name].reads != "logits"), None)


def _check_logits_alone(draft: Draft, spec: Losses, stage: str) -> None:
    """Raise `CompressError` for a loss on states: between different tokenizations only answers can be compared."""
    if (beyond := loss_on_states(spec)) is None:
        return
    names = f"student {draft.student.name if draft.student else ''} and teacher {draft.teacher.card.name}"
    raise draft.fails(
        stage,
        f"{beyond} compares states per token, and {names} cut texts into different tokens; between them only "
        f"losses on the classes work ({answer_losses(draft)}), on the task's texts: choose recipe logits",
    )


def check_text(draft: Draft, spec: OnText, stage: str, *models: str) -> None:
    """Raise `CompressError` if the stage's sequences are too short, or one of the models that read them cannot read them as it says."""
    if spec.max_length is not None and spec.max_length < SHORTEST:
        raise draft.fails(
            stage, f"max_length is {spec.max_length}; expected at least {SHORTEST} tokens for a sequence of plain text"
        )
    for model in models:
        family = FAMILIES[draft.sizes[model].architecture]
        if spec.attention == "document" and not family.attention.separates_documents:
            raise draft.fails(
                stage,
                f"attention: a {family.name} cannot keep the documents of a sequence apart; leave it at `sequence`",
            )


def check_layer_map(draft: Draft, spec: Losses, stage: str, student: str, teacher: str) -> None:
    """Raise `CompressError` if the layers that `spec` matches are not those of the models that learn and teach; note a map that no loss
    reads."""
    layers = {"student_layers": draft.sizes[student].layers, "teacher_layers": draft.sizes[teacher].layers}
    try:
        matched = matched_layers(spec, **layers)
    except CompressError as error:
        raise draft.fails(stage, str(error)) from None
    if spec.layer_map not in (None, "uniform") and not matched:
        readers = ", ".join(name for name, loss in LOSSES.items() if loss.matches_layers)
        draft.notes.append(f"{stage}.layer_map has no effect: no loss of the stage matches layers; {readers} do")
