"""pretrain: train the teacher itself on plain text, if the recipe says so and there is text."""

from __future__ import annotations

from typing import Any

from ...catalog import names
from ...errors import CompressError
from ...models.checkpoints.folders import load_encoder, save_checkpoint
from ...models.dimensions import word_and_position_widths
from ...models.families import FAMILIES
from ...models.layer_maps import check_losses
from ...models.masked_lm import has_masked_lm_head, load_masked_lm, masked_lm_around, new_masked_lm_head
from ...models.random_models import random_encoder
from ...spec.recipe import Stage
from ...spec.stages import Pretrain
from ..plan import TRAINING, Draft, Job, Kind
from ..plan.fields import WITHOUT_TEXT, check_text, seeded_fields
from ..plan.teachers import TeacherSource
from ..training.info import TrainingInfo
from ..training.text import stage_losses, text_of, uses_mlm, with_masking
from .base_teacher import PRETRAINED
from .tokenize import add_text
from .unscored import unscored_notes


def plan(draft: Draft, stage: Stage) -> None:
    spec: Pretrain = stage.spec
    card, sizes = draft.teacher.card, draft.sizes["teacher"]
    if draft.corpus is None:
        raise draft.fails(stage.id, f"{WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false")
    if draft.learns_labels and draft.adopts(draft.teacher):
        raise draft.fails(
            stage.id,
            f"teacher {card.name} is fine-tuned already; give --refit to train it on text and then on the task",
        )
    where = f"recipe {draft.recipe.name}, stage {stage.id}, teacher {card.name}"
    check_losses(spec.losses, student=sizes, teacher=sizes, where=where)
    check_text(draft, spec, stage.id, "teacher")
    draft.notes.extend(unscored_notes(stage.id, spec.model_dump(exclude_unset=True)))
    if uses_cooccurrence_init(spec, draft.teacher):
        _check_start(draft, stage.id)
    described = seeded_fields(draft, spec, draft.base_seed)
    inputs, outside = {"text": add_text(draft, spec.max_tokens)}, {"teacher": draft.teacher.identity}
    draft.add(PRETRAIN, PRETRAINED, "teacher", spec, described, inputs=inputs, outside=outside, seed=draft.base_seed)


def uses_cooccurrence_init(spec: Pretrain, teacher: TeacherSource) -> bool:
    """Whether random weights are initialized from co-occurrences counted in the text."""
    return spec.start == "cooccurrence" and teacher.is_random_init


def _check_start(draft: Draft, stage: str) -> None:
    sizes = draft.sizes["teacher"]
    instead = f"say --set {stage}.start=random"
    if not FAMILIES[sizes.architecture].random.cooccurrence_init:
        recipe = f"{sizes.architecture}-pretrain"
        own = f"take recipe {recipe}, or {instead}" if recipe in names("recipes") else instead
        known = " or ".join(f"a {name}" for name, family in FAMILIES.items() if family.random.cooccurrence_init)
        raise draft.fails(stage, f"start: cooccurrence is for {known}, found {sizes.architecture}; {own}")
    try:
        word_and_position_widths(sizes.hidden, sizes.heads)
    except CompressError as error:
        raise draft.fails(stage, f"start: cooccurrence: {error}; {instead}") from None


def run(job: Job[Pretrain]) -> TrainingInfo:
    """Train from random weights, or the teacher's checkpoint, and write the checkpoint, with a masked-LM head if that is among the
    losses."""
    import torch

    from ...models.masked_head import MaskedLmHeads
    from ...objective import Objective
    from ..training.initial_teacher import cooccurrence_init
    from ..training.run import TrainingRun

    plan, node = job.plan, job.node
    torch.manual_seed(node.seed)
    masks = uses_mlm(node)
    model = _initial(job, masked=masks)
    text, held = text_of(plan, node, job.inputs["text"])
    counted = cooccurrence_init(job, model, text) if uses_cooccurrence_init(job.spec, plan.teacher) else None
    encoder = getattr(model, "base_model", model)
    masked = MaskedLmHeads(model) if masks else None
    width = encoder.config.hidden_size
    objective = Objective(stage_losses(node), widths=(width, width), masked_lm=masked)
    info = TrainingRun(job, encoder, objective).train(
        text if masked is None else with_masking(plan, node, text), None, None
    )
    if held is not None and masked is not None:
        # If processes held parts of the encoder, it stayed on its device, and the head is on the one where it was trained.
        model.to(next(masked.parameters()).device)
        _hold_against(job, model, with_masking(plan, node, held), info)
    save_checkpoint(model.eval(), plan.teacher.tokenizer, job.out)
    if counted is not None:
        info["start"] = counted
    info["sequence_length"], info["sequences"] = text.length, text.count
    return info


def _initial(job: Job[Pretrain], *, masked: bool) -> Any:
    """Return a masked language model, with its own or a new head, or an encoder alone."""
    from ..training.initial_teacher import grow_into

    teacher = job.plan.teacher
    folder = teacher.folder
    if folder is None:
        encoder = random_encoder(teacher.config)
        model = masked_lm_around(encoder) if masked else encoder
        grow_into(model, teacher, seed=job.node.seed)
        return model
    if not masked:
        return load_encoder(folder)
    head = load_masked_lm(folder) if has_masked_lm_head(folder) else new_masked_lm_head(folder)
    return masked_lm_around(load_encoder(folder), head)  # its own encoder has no pooler, which losses on pairs read


def _hold_against(job: Job[Pretrain], model: Any, held: Any, info: TrainingInfo) -> None:
    """Add the perplexity of the held-out text."""
    from ..training.held_out import held_out_loss

    held_out = held_out_loss(model.eval(), held, size=job.spec.micro_batch_size or job.spec.batch_size)
    info["held_out"] = held_out
    job.context.notice(
        f"{job.node.id}: perplexity {held_out['perplexity']:.1f} of the masked tokens of {held_out['sequences']:,} sequences that "
        f"were not trained on, after {info['steps']:,} steps"
    )


PRETRAIN = Kind(
    "pretrain", 5, Pretrain, run=run, plan=plan, libraries=TRAINING, trains=True, checkpoint=True, trained_model="teacher",
    reads_text=True,
)  # fmt: skip
