"""prune: the last model without the heads and neurons that its loss depends on least."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from ...errors import CompressError
from ...losses.hard_label import HardLabel
from ...models.checkpoints import load_classifier, load_tokenizer, pad_id, save_checkpoint
from ...models.dimensions import Dimensions, dimensions, read_config
from ...models.heads import HEADS
from ...models.pruned_shape import not_prunable, prunable
from ...spec.recipe import Stage
from ...spec.stages import Prune
from ...tasks import TaskBatches, encode, sorted_chunks
from ..plan import TRAINING, Draft, Job, Kind, Node, Plan
from ..plan.smaller import add_smaller
from ..plan.vectors import learns_labels

if TYPE_CHECKING:
    from ...models.features import Batch

_SAMPLE = 512  # training texts whose mean length a plan is checked by
_BATCH = 32  # examples of a backward
_REPAIR_TOKENS = 65_536  # whose states two models hold: 0.4 GB at 768 a token


class PruneInfo(TypedDict):
    """Of each layer the numbers of the heads and how many neurons stay; `flops`: share of the layers' FLOPs at `mean_length` tokens.
    Scores are points on the tuning split, `repaired_tuning_score` None without a repair."""

    heads: list[list[int]]
    neurons: list[int]
    flops: float
    mean_length: float
    examples: int
    whole_tuning_score: float
    pruned_tuning_score: float
    repaired_tuning_score: float | None


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
    add_smaller(draft, PRUNE, "pruned", stage.spec, described, stage=stage.id, outside={"data": draft.task.fingerprint})


def check(plan: Plan, node: Node[Prune]) -> None:
    """The budget has room for the narrowest layers."""
    from ...pruning.budget import least_share

    train = plan.task.data.train
    sample = train.select(np.unique(np.linspace(0, len(train) - 1, _SAMPLE).astype(int)))
    length = encode(plan.source_of(node).tokenizer, sample, plan.task.spec.max_length).lengths.mean()
    least = least_share(plan.sizes[node.model], float(length))
    if node.spec.flops < least:
        raise CompressError(
            f"recipe {plan.recipe.name}, stage {node.stage}: flops: expected at least {math.ceil(1000 * least) / 1000:g}, which one head "
            f"and 16 neurons in every layer cost; found {node.spec.flops:g}; for less, prune a student of fewer layers"
        )


def run(job: Job[Prune]) -> PruneInfo:
    """-> checkpoint, of our own class unless all layers are alike with all their heads."""
    from ...models.pruned import shape_of
    from ...objective import Objective
    from ...pruning.budget import choose, least_share
    from ...pruning.removal import without_units
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
    before, length = _sizes(job, config), float(encoded.lengths.mean())
    kept = choose(gradients, before, length=length, share=max(spec.flops, least_share(before, length)))
    pruned = without_units(model, kept.heads, kept.neurons)
    after, points = _sizes(job, pruned.config.to_dict()), tuning_score(context.task.data, tuning, pad)
    whole_score, pruned_score, repaired_score = points(model), points(pruned), None
    if spec.repair:
        _repair(job, pruned, model, data)
        repaired_score = points(pruned)
    save_checkpoint(pruned, tokenizer, job.out)
    repaired = "" if repaired_score is None else f", {repaired_score:.1f} repaired"
    context.notice(
        f"{job.node.id}: {after}; tuning score {whole_score:.1f} whole, {pruned_score:.1f} pruned{repaired}, without training"
    )
    shape = shape_of(pruned).field
    return {
        "heads": shape["heads"],
        "neurons": shape["neurons"],
        "flops": after.layers_flops(length) / before.layers_flops(length),
        "mean_length": length,
        "examples": len(gradients[0].heads),
        "whole_tuning_score": whole_score,
        "pruned_tuning_score": pruned_score,
        "repaired_tuning_score": repaired_score,
    }


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
