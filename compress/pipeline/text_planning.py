"""What is planned before the task: a masked-LM head, the general stage, the augmentation."""

from __future__ import annotations

from .. import store
from ..models.masked_lm import has_masked_lm_head
from ..places import from_home
from ..spec.losses import OF_TOKENS, TEXT_LABELS
from ..spec.recipe import Stage
from ..spec.stages import Augment, Losses
from .draft import Draft
from .planning_parts import WITHOUT_TEXT, add_text, check_stage_losses, described_student, for_task, pull_of, seeded
from .teacher_planning import has_head, knows_nothing, untuned
from .teachers import resolve_teacher


def plan_masked_lm(draft: Draft, stage: Stage) -> None:
    """Only where the general stage or the augmentation has a use for it: the teacher has no head of its own."""
    spec = stage.spec
    if spec.enabled == "auto" and (draft.corpus is None or not _wants_head(draft)):
        return
    if draft.corpus is None:
        raise draft.fails(stage.id, f"{WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false")
    if knows_nothing(draft):
        raise draft.fails(stage.id, f"teacher {draft.teacher.card.name} has random weights, which know no words")
    inputs = {"text": add_text(draft, spec.max_tokens)} | untuned(draft)
    described = seeded(draft, spec, draft.base_seed)
    outside = {"teacher": draft.teacher.identity}
    draft.add(
        "masked_lm",
        "masked-lm",
        "teacher-masked-lm",
        spec,
        described,
        inputs=inputs,
        outside=outside,
        seed=draft.base_seed,
    )


def _wants_head(draft: Draft) -> bool:
    if knows_nothing(draft) or has_head(draft):
        return False
    augment = _augmentation(draft)
    if any(stage.kind == "general" and stage.spec.enabled and _asks_head(stage.spec) for stage in draft.recipe.stages):
        return True
    return augment is not None and augment.source != "embedding" and augment.masked_lm is None


def _asks_head(spec: Losses) -> bool:
    """Whether the stage reads what the teacher's masked-LM head says."""
    return any(loss.name == "masked_soft_target" and loss.weight > 0 for loss in spec.losses)


def _head(draft: Draft, stage: Stage) -> dict[str, str]:
    """Where the stage takes a teacher with a masked-LM head from: the one that `masked_lm` trained, or its own."""
    if draft.has("masked-lm"):
        return {"masked_lm": "masked-lm"}
    if has_head(draft):
        return untuned(draft)
    raise draft.fails(
        stage.id,
        f"masked_soft_target: teacher {draft.teacher.card.name} has no masked-LM head; put `- masked_lm:` before it, which "
        "trains one, or choose another teacher",
    )


def _augmentation(draft: Draft) -> Augment | None:
    specs = (stage.spec for stage in draft.recipe.stages if stage.kind == "augment" and stage.spec.enabled)
    found = next(specs, None)
    return None if found is None else for_task(draft, (found,), Augment)


def plan_general(draft: Draft, stage: Stage) -> None:
    spec, teacher = stage.spec, draft.teacher
    if knows_nothing(draft):
        problem = (
            f"teacher {teacher.card.name} has random weights before its fine-tuning: there is nothing to learn from it"
        )
    elif draft.corpus is None:
        problem = f"{WITHOUT_TEXT}, or leave the stage out with --set {stage.id}.enabled=false"
    else:
        _add_general(draft, stage)
        return
    if spec.enabled is True:
        raise draft.fails(stage.id, problem)
    draft.notes.append(f"{stage.id} distillation is left out: {problem.split(', or')[0]}")


def _add_general(draft: Draft, stage: Stage) -> None:
    spec = stage.spec
    if pull_of(spec) is not None:
        raise draft.fails(stage.id, "block_spread compares blocks that only a distill stage with `untied: true` has")
    if draft.teacher.fine_tuned and any(loss.weight > 0 and loss.name not in TEXT_LABELS for loss in spec.losses):
        draft.notes.append(f"{stage.id} distillation learns from the fine-tuned teacher: no other was given")
    check_stage_losses(draft, spec, stage.id)
    described = seeded(draft, spec, draft.base_seed) | described_student(draft)
    if any(loss.name in OF_TOKENS for loss in spec.losses):
        described |= {"heads": 2}  # version of their code; other general stages do not depend on it
    teacher = _head(draft, stage) if _asks_head(spec) else untuned(draft)
    inputs, outside = {"text": add_text(draft, spec.max_tokens), **teacher}, {"teacher": draft.teacher.identity}
    draft.add(
        "general",
        "encoder",
        "encoder",
        spec,
        described,
        inputs=inputs,
        outside=outside,
        seed=draft.base_seed,
        stage=stage.id,
    )


def plan_augment(draft: Draft, stage: Stage) -> None:
    spec = for_task(draft, (stage.spec,), Augment)
    source, inputs, outside = _candidates(draft, spec, stage.id)
    unused = {"masked_lm": None} if source == "embedding" else {}  # a resolved recipe names only what it uses
    spec = spec.model_copy(update={"source": source, **unused})
    described = spec.model_dump(mode="json", exclude={"per_task", "glove", "masked_lm"}) | {"seed": draft.base_seed}
    outside |= {"teacher": draft.teacher.identity, "data": draft.task.fingerprint}
    inputs |= {"teacher": "teacher"} if knows_nothing(draft) else untuned(draft)  # of random weights: its trained table
    draft.add(
        "augment", "augmented", "augmented", spec, described, inputs=inputs, outside=outside, seed=draft.base_seed
    )


def _candidates(draft: Draft, spec: Augment, stage: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Where the candidates of single-piece words come from: (source, inputs, hashes of what is outside)."""
    outside = {"glove": store.hash_file(from_home(spec.glove))} if spec.glove else {}
    if spec.source == "embedding":
        return "embedding", {}, outside
    if spec.masked_lm is not None:
        other = resolve_teacher(spec.masked_lm)
        if other.folder is None or not has_masked_lm_head(other.folder):
            raise draft.fails(stage, f"masked_lm: {spec.masked_lm} has no masked-LM head")
        return "masked_lm", {}, outside | {"masked_lm": other.identity}
    if draft.has("masked-lm"):
        return "masked_lm", {"masked_lm": "masked-lm"}, outside
    if has_head(draft):
        return "masked_lm", {}, outside
    lacking = f"teacher {draft.teacher.card.name} has no masked-LM head"
    if spec.source == "masked_lm":
        raise draft.fails(
            stage, f"{lacking}: give plain text to train one on (--corpus PATH), or name a card with `masked_lm`"
        )
    draft.notes.append(f"{stage}: {lacking} and none was trained; all candidates are neighbours in the embedding table")
    return "embedding", {}, outside
