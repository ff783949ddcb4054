"""What each kind of stage adds to a plan."""

from __future__ import annotations

from collections.abc import Callable

from ..machine import cpu_name, isa, versions
from ..spec.losses import BlockSpread
from ..spec.quantization import INC, SEARCHED
from ..spec.recipe import Stage
from ..spec.stages import Distill
from .aware_planning import calibrated_on, plan_quantize_aware
from .draft import Draft
from .planning_parts import add_export, check_stage_losses, described_student, for_task, pull_of, seeded
from .text_planning import plan_augment, plan_general, plan_masked_lm


def _planned_with_the_teacher(draft: Draft, stage: Stage) -> None:
    """`plan_teacher` comes first."""


def _plan_distill(draft: Draft, stage: Stage) -> None:
    card = draft.teacher.card
    training = for_task(draft, (card.finetune, card.distill, stage.spec), Distill)
    check_stage_losses(draft, training, stage.id)
    _check_blocks(draft, training, stage)
    training = _with_groups(draft, training)
    name = "student" if stage.id == "distill" else stage.id
    inputs = {"teacher": draft.latest["teacher"]}
    inputs |= {"student": draft.latest["student"]} if "student" in draft.latest else {}
    inputs |= {"encoder": "encoder"} if draft.has("encoder") and "student" not in draft.latest else {}
    inputs |= {"augmented": "augmented"} if draft.has("augmented") else {}
    described = seeded(draft, training, draft.seed) | described_student(draft)
    outside = {"data": draft.task.fingerprint}
    draft.add("distill", name, "student", training, described, inputs=inputs, outside=outside, stage=stage.id)
    draft.latest["student"] = name
    draft.current, draft.untied = "student", training.untied


def _check_blocks(draft: Draft, spec: Distill, stage: Stage) -> None:
    """An untied ALBERT is trained before one that shares, and only there its blocks can be pulled together."""
    card, pull = draft.student, pull_of(spec)
    if pull is not None and not spec.untied:
        raise draft.fails(
            stage.id, "block_spread compares the blocks of an untied stage; leave it out, or say `untied: true`"
        )
    if not spec.untied or card is None:
        return
    if card.albert is None or card.albert.share != "all":
        raise draft.fails(stage.id, f"untied: student {card.name} is no ALBERT with `share: all`; leave `untied` out")
    if card.albert.groups == card.layers:
        raise draft.fails(
            stage.id, f"untied: student {card.name} has a block for each layer as it is; leave `untied` out"
        )
    if pull is not None and pull.groups not in (None, card.albert.groups):
        raise draft.fails(
            stage.id,
            f"block_spread: groups is {pull.groups}, and student {card.name} has {card.albert.groups}; leave `groups` out",
        )
    if draft.has("encoder") or ("student" in draft.latest and not draft.untied):
        raise draft.fails(
            stage.id,
            "untied: a stage before it shares the blocks already; put untied stages first, without a general stage",
        )
    if stage is [each for each in draft.recipe.stages if each.kind == "distill" and each.spec.enabled][-1]:
        raise draft.fails(stage.id, "untied: the last distill stage must share the blocks; add one after it")


def _with_groups(draft: Draft, spec: Distill) -> Distill:
    """`spec`, with the student's groups where its `block_spread` leaves them open."""
    albert = draft.student.albert if draft.student is not None else None
    if albert is None or not spec.untied:
        return spec
    losses = tuple(
        loss.model_copy(update={"groups": albert.groups}) if isinstance(loss, BlockSpread) else loss
        for loss in spec.losses
    )
    return spec.model_copy(update={"losses": losses})


def _plan_export(draft: Draft, stage: Stage) -> None:
    if draft.student is not None and "student" not in draft.latest:
        raise draft.fails(stage.id, "every distill stage is switched off, so there is no student; leave one on")
    add_export(draft, stage.spec)


def _plan_quantize(draft: Draft, stage: Stage) -> None:
    model = draft.current
    inputs = {model: draft.latest[model], f"{model}-fp32": f"{model}-fp32"}
    for precision in stage.spec.precisions:
        layout = stage.spec.layout(precision)
        read = calibrated_on(draft, stage.spec) if stage.spec.calibrates(layout) else {}
        described = stage.spec.form(precision).described(layout)
        described |= {"precision": precision} if precision == "avx2" else {}  # its file has a name of its own
        described |= {"libraries": _of_inc()} if described.get("method") == INC else {}
        # A search goes by what this CPU answers; `auto` also by how fast.
        described |= {"isa": list(isa())} if described.get("method") in SEARCHED else {}
        described |= {"cpu": cpu_name()} if described.get("method") == "auto" else {}
        draft.add("quantize", f"{model}-{precision}", model, stage.spec, described, inputs=inputs, outside=read)


def _of_inc() -> dict[str, str]:
    return {name: version for name, version in versions().items() if name in ("torch", "neural-compressor", "torchao")}


PLANNERS: dict[str, Callable[[Draft, Stage], None]] = {
    "pretrain": _planned_with_the_teacher,
    "finetune": _planned_with_the_teacher,
    "masked_lm": plan_masked_lm,
    "general": plan_general,
    "augment": plan_augment,
    "distill": _plan_distill,
    "quantize_aware": plan_quantize_aware,
    "export": _plan_export,
    "quantize": _plan_quantize,
}
