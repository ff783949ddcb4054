"""Check whether a trained model answers better than one that reads no text."""

from __future__ import annotations

from typing import Any

from ...fields import Spec
from ...store import Artifact
from ..plan import Context, Node, Plan
from ..plan.teachers import names_of
from .adopt import can_judge, constant_score, is_always_right, unproven
from .base_teacher import PRETRAINED

_GUESS = "constant_score"  # in a manifest, so that a run whose stages are all cached reads no data to compare


def warn_if_nothing_learnt(plan: Plan, node: Node[Spec], artifact: Artifact, context: Context) -> None:
    """Report a model that learnt nothing, in every run that it is part of, whichever trained it. For one of several teachers, name it and
    what it does to their mean."""
    score = _score(node, artifact.info)
    if score is None:
        return
    guess = artifact.describe.get(_GUESS)
    if guess is None:  # made by an earlier version, or not to be judged
        if not can_judge(context.task.data):
            return
        guess = constant_score(context.task.data)
    several = bool(plan.others) and node.id in plan.teachers
    name = f"teacher {names_of(plan.teachers)[node.id]}" if several else node.id
    if is_always_right(score, guess):
        context.notice(f"{name}: {unproven(score)}")
    elif not score > guess:
        way = " and weighs as much in the teachers' mean as any other; leave it out, or" if several else ";"
        other = ", give a pre-trained teacher (--teacher)" if _has_random_weights(plan, node) else ""
        context.notice(
            f"{name} scores {score:.1f} on the tuning split, no better than a constant answer ({guess:.1f}): "
            f"it has learnt nothing{way} train longer (--set {node.stage}.{_limit(node, artifact.info)}=N){other}, or look at the data"
        )


def _limit(node: Node[Spec], info: dict[str, Any]) -> str:
    """Return the setting that ended the training: more epochs change nothing once `max_steps` is reached."""
    return "max_steps" if info.get("steps", 0) == getattr(node.spec, "max_steps", None) else "epochs"


def _has_random_weights(plan: Plan, node: Node[Spec]) -> bool:
    """Whether the model is a teacher that has random weights before its fine-tuning."""
    teacher = plan.teachers.get(node.id)
    return teacher is not None and teacher.is_random_init and all(each.id != PRETRAINED for each in plan.nodes)


def recorded_guess(node: Node[Spec], info: dict[str, Any], context: Context) -> dict[str, float]:
    """Return what the manifest of a stage that was just run stores for `warn_if_nothing_learnt`."""
    if _score(node, info) is None or not can_judge(context.task.data):
        return {}
    return {_GUESS: constant_score(context.task.data)}


def _score(node: Node[Spec], info: dict[str, Any]) -> float | None:
    """Points on the tuning split; None for a stage that trains nothing, or is not scored."""
    return info.get("tuning_score") if node.kind.trains or node.kind.chooses else None
