"""What an ablation varies: the recipe as it is, without one part at a time, and with other students."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...errors import CompressError
from ...losses import LOSSES
from ...losses.hard_label import HardLabel
from ...spec.recipe import Recipe, Stage
from ..plan.students import resolve_student
from ..request import load_recipe

FULL = "full"
WITHOUT_COPIES = "without augment"
_STUDENT = "student "
SWITCHES = ("general", "augment")
LAYERWISE = [name for name, loss in LOSSES.items() if loss.reads == "states"]
TRANSFORMER = [name for name, loss in LOSSES.items() if loss.matches_layers]
SOFT = [name for name, loss in LOSSES.items() if loss.reads == "logits" and loss.needs_teacher]
MAPS = ("uniform", "top", "bottom")
_NAME_LENGTH = 64


@dataclass(frozen=True)
class Row:
    """One variant: a recipe that ends in the fp32 student, which an ablation measures. `student`: the card or checkpoint that replaces the
    recipe's student."""

    label: str
    recipe: Recipe
    moved: tuple[str, str] | None = None
    student: str | None = None


@dataclass(frozen=True)
class _Change:
    """One change to the recipe. `moved`: the distill stage that is left out, and the one that inherits its training."""

    label: str
    overrides: tuple[str, ...]
    moved: tuple[str, str] | None = None


def chosen_rows(name: str, overrides: Sequence[str], labels: Sequence[str], *, corpus: bool) -> list[Row]:
    """Return `full` and the rows with these labels; without labels, all that `rows` returns. If only other students are named, the recipe
    needs no part that could be left out. Raises what `rows` and `choose` raise."""
    if labels and all(label.startswith(_STUDENT) for label in labels):
        return choose([_make_row(name, overrides, _Change(FULL, ()))], labels)
    return choose(rows(name, overrides, corpus=corpus), labels)


def rows(name: str, overrides: Sequence[str] = (), *, corpus: bool) -> list[Row]:
    """Return `full`, then the recipe without each of its parts in turn. `corpus`: whether there is plain text for a general stage.

    The layer-wise losses and the layer map are varied in the distill stages that match layers (if none does, the losses of the first stage
    that has a layer-wise one); a general stage keeps its own. Where soft targets are left out, the gold label replaces them.

    Raises `CompressError` if the recipe has no part to leave out, or if a stage sets what is varied differently per task.
    """
    recipe = load_recipe(name, overrides)
    changes = list(_changes(recipe, corpus))
    if not changes:
        raise CompressError(
            f"recipe {recipe.name}: there is nothing to leave out; an ablation needs a general or augment stage, "
            "or distillation with several parts"
        )
    return [_make_row(name, overrides, change) for change in (_Change(FULL, ()), *changes)]


def choose(candidates: Sequence[Row], labels: Sequence[str]) -> list[Row]:
    """Return `full` and the named rows; all of `candidates` if none is named. `student CARD` is the recipe with that card, or with a
    pre-trained student from that checkpoint.

    Raises `CompressError` for unknown labels and cards.
    """
    known = [row.label for row in candidates]
    others = list(dict.fromkeys(label for label in labels if label.startswith(_STUDENT)))
    for label in labels:
        if label not in (*known, *others):
            raise CompressError(
                f"--rows: no row `{label}`; this recipe has: {', '.join(known)}; and `{_STUDENT}CARD` for any card"
            )
    kept = [row for row in candidates if not labels or row.label == FULL or row.label in labels]
    return [*kept, *(_with_student(candidates[0].recipe, label) for label in others)]


def _with_student(recipe: Recipe, label: str) -> Row:
    if recipe.student is None:
        raise CompressError(f"--rows: `{label}`: recipe {recipe.name} makes no student")
    word = label.removeprefix(_STUDENT).strip()
    card, _ = resolve_student(word)
    name = _row_name(recipe.name.removesuffix(f"-{FULL}"), f"{_STUDENT}{card.name[: _NAME_LENGTH // 2]}")
    title = f"{recipe.title}: {_STUDENT}{card.name}"
    return Row(label, recipe.model_copy(update={"name": name, "title": title}), student=word)


def _make_row(name: str, overrides: Sequence[str], change: _Change) -> Row:
    recipe = load_recipe(name, [*overrides, *change.overrides])
    name = _row_name(recipe.name, change.label)
    title = recipe.title if change.label == FULL else f"{recipe.title}: {change.label}"
    stages = tuple(stage for stage in recipe.stages if stage.kind not in ("quantize_aware", "quantize"))
    recipe = recipe.model_copy(update={"name": name, "title": title, "stages": stages})
    return Row(change.label, recipe, change.moved)


def _row_name(recipe: str, label: str) -> str:
    slug = label.replace(" ", "-")
    return f"{recipe[: _NAME_LENGTH - len(slug) - 1]}-{slug}"


def _changes(recipe: Recipe, corpus: bool) -> Iterator[_Change]:
    distills = [stage for stage in recipe.stages if stage.kind == "distill" and stage.spec.enabled]
    for stage in recipe.stages:
        needs_text = stage.kind == "general"
        if stage.kind in SWITCHES and stage.spec.enabled is not False and (corpus or not needs_text):
            yield _disable_stage(stage)
    layers = _layerwise(distills)
    soft = next((stage for stage in reversed(distills) if _weighted_losses(stage, SOFT)), None)
    yield from _layer_losses(layers)
    left_out = [_without_stage(stage, distills) for stage in layers if len(distills) > 1]
    yield from left_out
    if soft is not None:
        gold = _with_gold(soft)
        yield gold
        for plain in left_out if len(layers) == 1 and layers[0] is not soft else ():
            yield _Change(
                f"{plain.label} and {' and '.join(_weighted_losses(soft, SOFT))}",
                (*plain.overrides, *gold.overrides),
                moved=plain.moved,
            )
    yield from _layer_maps(layers)


def _layerwise(distills: Sequence[Stage]) -> list[Stage]:
    """Return the stages whose layer-wise losses are varied: those that match layers, else the first that has any such loss."""
    matching = [stage for stage in distills if _weighted_losses(stage, TRANSFORMER)]
    return matching or [stage for stage in distills if _weighted_losses(stage, LAYERWISE)][:1]


def _without(stage: Stage) -> str:
    """Label of the row without the stage. A stage may have the name of a loss, which has a row of its own."""
    return f"without stage {stage.id}" if stage.id in LOSSES else f"without {stage.id}"


def _disable_stage(stage: Stage) -> _Change:
    return _Change(_without(stage), (f"{stage.id}.enabled=false",))


def _without_stage(stage: Stage, distills: Sequence[Stage]) -> _Change:
    """Leave out a stage; the next one inherits its training (for the last stage, the previous one)."""
    place = distills.index(stage)
    heir = distills[place + 1] if place + 1 < len(distills) else distills[place - 1]
    return _Change(_without(stage), (f"{stage.id}.enabled=false",), moved=(stage.id, heir.id))


def _weighted_losses(stage: Stage, names: Sequence[str] | None = None) -> list[str]:
    """Names of a stage's losses with a positive weight, limited to `names`, in the stage's order."""
    return [loss.name for loss in stage.spec.losses if loss.weight > 0 and (names is None or loss.name in names)]


def _zero_weights(stage: Stage, names: Sequence[str]) -> tuple[str, ...]:
    places = [number for number, loss in enumerate(stage.spec.losses) if loss.name in names]
    return tuple(f"{stage.id}.losses[{place}].weight=0" for place in places)


def _layer_losses(stages: Sequence[Stage]) -> Iterator[_Change]:
    """Leave out each layer-wise loss, then all those on transformer layers; skip a change that would leave a stage without losses."""
    for stage in stages:
        _same_for_all_tasks(stage, "losses")
    weighted = [_weighted_losses(stage) for stage in stages]
    names = [name for name in dict.fromkeys(itertools.chain(*weighted)) if name in LAYERWISE]
    transformer = [name for name in names if name in TRANSFORMER]
    for group in [*([name] for name in names), *([transformer] if len(transformer) > 1 else [])]:
        if all(set(losses) - set(group) for losses in weighted):
            weights = itertools.chain(*(_zero_weights(stage, group) for stage in stages))
            yield _Change(f"without {' and '.join(group)}", tuple(weights))


def _with_gold(stage: Stage) -> _Change:
    """Replace the soft targets by the gold label; the stage keeps its other losses."""
    _same_for_all_tasks(stage, "losses")
    kept = [loss for loss in stage.spec.losses if loss.name not in SOFT and loss.weight > 0]
    kept += [] if any(loss.name == "hard_label" for loss in kept) else [HardLabel()]
    written = json.dumps([loss.model_dump(mode="json") for loss in kept])
    return _Change(f"without {' and '.join(_weighted_losses(stage, SOFT))}", (f"{stage.id}.losses={written}",))


def _layer_maps(stages: Sequence[Stage]) -> Iterator[_Change]:
    matching = [stage for stage in stages if _weighted_losses(stage, TRANSFORMER)]
    for stage in matching:
        _same_for_all_tasks(stage, "layer_map")
    for rule in MAPS:
        if any(rule != (stage.spec.layer_map or "uniform") for stage in matching):
            yield _Change(f"map {rule}", tuple(f"{stage.id}.layer_map={rule}" for stage in matching))


def _same_for_all_tasks(stage: Stage, field: str) -> None:
    tasks = [task for task, fields in stage.spec.per_task.items() if field in fields]
    if tasks:
        raise CompressError(
            f"stage {stage.id}: per_task sets `{field}` for {', '.join(tasks)}, but an ablation varies it for all "
            "tasks alike; write a separate recipe for these tasks"
        )
