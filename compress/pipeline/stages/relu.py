"""relu: replace the last model's activation by ReLU, and refit the output matrices to compensate."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...models.checkpoints.folders import load_classifier, load_tokenizer, pad_id, save_checkpoint
from ...models.dimensions import read_config
from ...models.families import FAMILIES
from ...models.heads import HEADS
from ...models.pruned.shape import prunable_families
from ...spec.recipe import Stage
from ...spec.stages import Relu
from ...tasks import TaskBatches
from ..plan import TRAINING, Draft, Job, Kind
from ..plan.changed import add_changed
from ..plan.fields import described_threshold
from ..training.info import Threshold
from .fit_samples import BATCH, fit_batches, fit_rows, reads_first_token
from .tuning_comparison import TuningComparison

_NAME = "relu"


class ReluInfo(Threshold):
    """`examples`: the number used for the fit; tuning points of the model `before`, with ReLU alone (`replaced`), and `fitted`; `same`: the
    share of examples with unchanged decisions, if answers are decisions."""

    examples: int
    before: float
    replaced: float
    fitted: float
    same: float | None


def plan(draft: Draft, stage: Stage) -> None:
    draft.check_student(stage.id)
    name, remedy = draft.sizes[draft.current].architecture, f"leave it out with --set {stage.id}.enabled=false"
    if FAMILIES[name] not in prunable_families():
        known = ", ".join(family.name for family in prunable_families())
        raise draft.fails(stage.id, f"fits layers with weights of their own, those of {known}; found {name}: {remedy}")
    source = draft.source(draft.current)
    if source.config.get(FAMILIES[source.config["model_type"]].own_name("hidden_act")) == stage.spec.activation:
        raise draft.fails(stage.id, f"{source.card.name} has ReLU already; {remedy}")
    described = {"examples": stage.spec.examples, "seed": draft.seed} | described_threshold(draft)
    outside = {"data": draft.task.fingerprint}
    add_changed(draft, RELU, _NAME, stage.spec, described, stage=stage.id, outside=outside)


def run(job: Job[Relu]) -> ReluInfo:
    """Write a checkpoint of the same sizes."""
    from ...pruning.repair import repair
    from ...training import make_accelerator
    from ..training.held_out import tuning_outputs
    from ..training.thresholds import choose_threshold

    folder, context = job.inputs["model"].path, job.context
    load = partial(load_classifier, folder, kind=context.kind, labels=context.labels, trained=True)
    before: Any = load().eval()
    model: Any = load(activation=job.spec.activation).eval()
    for each in (before, model):
        each.to(make_accelerator(context.precision).device)  # in fp32: no autocast
    tokenizer, pad = load_tokenizer(folder), pad_id(read_config(folder))
    train, tuning = (
        context.task.encoded(split, tokenizer, context.task.spec.max_length) for split in ("train", "tuning")
    )
    scores = TuningComparison(
        context.task.data, tuning.labels, partial(tuning_outputs, context.task.data, tuning, pad), before
    )
    replaced = scores.predict(model)
    data = TaskBatches(train, batch_size=BATCH, pad_id=pad, seed=job.node.seed)
    head = HEADS[context.kind]
    rows = fit_rows(data, job.spec.examples, head)
    repair(
        model,
        before,
        fit_batches(data, rows.held, model.device),
        first_token=reads_first_token(head),
        further=partial(fit_batches, data, rows.further, model.device),
        on_progress=lambda done, total: context.listener.progress("fitting layers", done, total),
    )
    fitted = scores.predict(model)
    points = [scores.points(outputs) for outputs in (scores.whole, replaced, fitted)]
    context.notice(
        f"{job.node.id}: tuning score {points[0]:.1f} before, {points[1]:.1f} with ReLU, {points[2]:.1f} fitted, without training"
    )
    decided = choose_threshold(model, tokenizer, context, stage=job.node.id)
    save_checkpoint(model.cpu(), tokenizer, job.out)
    return {
        **decided,
        "examples": len(rows),
        "before": points[0],
        "replaced": points[1],
        "fitted": points[2],
        "same": scores.same(fitted),
    }


RELU = Kind(_NAME, 3, Relu, run=run, plan=plan, libraries=TRAINING, checkpoint=True)
