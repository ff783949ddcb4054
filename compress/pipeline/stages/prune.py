"""prune: the last model without the heads and neurons that its loss depends on least."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ...errors import CompressError
from ...losses.hard_label import HardLabel
from ...models.checkpoints import load_classifier, load_tokenizer, pad_id, save_checkpoint
from ...models.dimensions import Dimensions, dimensions, read_config
from ...models.heads import HEADS
from ...models.pruned_shape import not_prunable, prunable
from ...recorded_pruning import BudgetName, PrunedPoint
from ...spec.recipe import Stage
from ...spec.stages import Prune
from ...tasks import TaskBatches, encode, sorted_chunks
from ..plan import TRAINING, Draft, Job, Kind, Node, Plan
from ..plan.changed import add_changed
from ..plan.vectors import learns_labels

if TYPE_CHECKING:
    from ...models.features import Batch
    from ...pruning.scores import LayerGradients

_SAMPLE = 512  # training texts whose mean length a plan is checked by
_BATCH = 32  # examples of a backward
_REPAIR_TOKENS = 65_536  # whose states two models hold: 0.4 GB at 768 a token


class PruneInfo(TypedDict):
    """As `PruningRecord`, of which it is a part; `points`: `PrunedPoint` as JSON."""

    budget: BudgetName
    examples: int
    mean_length: float
    whole: float
    points: list[dict[str, Any]]


def plan(draft: Draft, stage: Stage) -> None:
    draft.check_student(stage.id)
    sizes = draft.sizes[draft.current]
    if sizes.architecture not in {family.name for family in prunable()}:
        raise draft.fails(
            stage.id, f"{not_prunable(sizes.architecture)}; leave it out with --set {stage.id}.enabled=false"
        )
    if not learns_labels(draft):
        raise draft.fails(
            stage.id,
            f"goes by the loss on the task's labels, and those of {draft.task.spec.kind} tasks train no model; leave it out "
            f"with --set {stage.id}.enabled=false",
        )
    described = {**stage.spec.model_dump(mode="json"), "seed": draft.seed}
    own = "student" if _is_healed(draft) else None
    outside = {"data": draft.task.fingerprint}
    add_changed(draft, PRUNE, "pruned", stage.spec, described, stage=stage.id, outside=outside, own=own)


def _is_healed(draft: Draft) -> bool:
    """Whether a distill stage comes after it, which makes a pruned teacher a student."""
    kinds = [stage.kind for stage in draft.recipe.stages if stage.is_enabled]
    return "distill" in kinds[kinds.index("prune") :]


def check(plan: Plan, node: Node[Prune]) -> None:
    """The budget has room for the narrowest layers."""
    from ...pruning.budget import least_share

    train = plan.task.data.train
    sample = train.select(np.unique(np.linspace(0, len(train) - 1, _SAMPLE).astype(int)))
    length = encode(plan.source_of(node).tokenizer, sample, plan.task.spec.max_length).lengths.mean()
    least = least_share(plan.sizes[node.model], float(length))
    if (share := node.spec.shares[-1]) < least:
        raise CompressError(
            f"recipe {plan.recipe.name}, stage {node.stage}: flops: expected at least {math.ceil(1000 * least) / 1000:g}, which one head "
            f"and 16 neurons in every layer cost; found {share:g}; for less, prune a student of fewer layers"
        )


def run(job: Job[Prune]) -> PruneInfo:
    """-> checkpoint of the last budget's model, of our own class unless all layers are alike with all their heads."""
    from ...objective import Objective
    from ...pruning.scores import mask_gradients
    from ..training.teacher_targets import tuning_score

    folder, context, spec = job.inputs["model"].path, job.context, job.spec
    model: Any = load_classifier(folder, kind=context.kind, labels=context.labels, trained=True).eval()
    config, tokenizer, longest = read_config(folder), load_tokenizer(folder), context.task.spec.max_length
    pad = pad_id(config)
    encoded, tuning = (context.task.encoded(split, tokenizer, longest) for split in ("train", "tuning"))
    data = TaskBatches(encoded, batch_size=_BATCH, pad_id=pad, seed=job.node.seed)
    gradients = mask_gradients(
        model,
        Objective((HardLabel(),), kind=context.kind),
        data,
        examples=spec.examples,
        on_progress=lambda done, total: context.listener.progress("examples", done, total),
    )
    score, length = tuning_score(context.task.data, tuning, pad), float(encoded.lengths.mean())
    whole, points, pruned = score(model), list[PrunedPoint](), None
    context.notice(f"{job.node.id}: tuning score {whole:.1f} whole")
    for share in spec.shares:
        pruned, point = _at(job, share, model, gradients, length, data, score)
        points.append(point)
    save_checkpoint(pruned, tokenizer, job.out)
    return {
        "budget": "flops",
        "examples": len(gradients[0].heads),
        "mean_length": length,
        "whole": whole,
        "points": [point.model_dump(mode="json") for point in points],
    }


def _at(
    job: Job[Prune],
    share: float,
    model: Any,
    gradients: Sequence[LayerGradients],
    length: float,
    data: TaskBatches,
    score: Callable[[Any], float],
) -> tuple[Any, PrunedPoint]:
    """The model at one budget, pruned and repaired."""
    from ...models.pruned import shape_of
    from ...pruning.budget import choose, least_share
    from ...pruning.removal import without_units

    before = _sizes(job, model.config.to_dict())
    kept = choose(gradients, before, length=length, share=max(share, least_share(before, length)))
    pruned = without_units(model, kept.heads, kept.neurons)
    after, alone, repaired = _sizes(job, pruned.config.to_dict()), score(pruned), None
    if job.spec.repair:
        _repair(job, pruned, model, data)
        repaired = score(pruned)
    said = "" if repaired is None else f", {repaired:.1f} repaired"
    job.context.notice(f"{job.node.id}: {after}; tuning score {alone:.1f} pruned{said}, without training")
    shape = shape_of(pruned)
    left = after.layers_flops(length) / before.layers_flops(length)
    found = {"budget": share, "flops": left, "pruned": alone, "repaired": repaired}
    return pruned, PrunedPoint(heads=shape.heads, neurons=shape.neurons, **found)


def _sizes(job: Job[Prune], config: dict[str, Any]) -> Dimensions:
    return dimensions(config, classes=job.plan.sizes[job.node.model].classes, kind=job.context.kind)


def _repair(job: Job[Prune], pruned: Any, model: Any, data: TaskBatches) -> None:
    from ...pruning.repair import repair

    head = HEADS[job.context.kind]
    repair(
        pruned,
        model,
        _batches(data, job.spec.examples),
        first_token=not head.per_token,
        on_progress=lambda done, total: job.context.listener.progress("layers", done, total),
    )


def _batches(data: TaskBatches, examples: int) -> Iterator[Batch]:
    """Of the examples that a first epoch begins with, no more than fit the memory."""
    import torch

    from ...models.predict import to_tensors

    rows = np.concatenate([data.indices(step) for step in range(min(len(data), math.ceil(examples / _BATCH)))])
    rows = rows[: max(1, int(np.searchsorted(np.cumsum(data.lengths(rows)), _REPAIR_TOKENS, side="right")))]
    for chunk in sorted_chunks(data.lengths(rows)):
        yield to_tensors(data.collate(rows[chunk]), torch.device("cpu"))


def _resized(spec: Prune, sizes: Dimensions) -> None:
    """By what the loss depends on."""


PRUNE = Kind("prune", 1, Prune, run, plan, check, libraries=TRAINING, checkpoint=True, resized=_resized)
