"""prune: remove the least important heads and neurons of the last model."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ....losses.hard_label import HardLabel
from ....machine import cpu_name, isa, versions
from ....models.checkpoints.folders import load_classifier, load_tokenizer, pad_id, save_checkpoint
from ....models.dimensions import Dimensions, dimensions, read_config
from ....models.heads import HEADS
from ....models.pruned.shape import prunable_families, why_not_prunable
from ....quantize.methods import int8_format
from ....results.pruning import PrunedPoint
from ....spec.recipe import Stage
from ....spec.stages import Prune
from ....spec.stages.prune import BudgetName, RepairName, ScoreName
from ....tasks import TaskBatches
from ...plan import TRAINING, Draft, Job, Kind
from ...plan.changed import add_changed
from ...plan.fields import described_threshold
from ...training.info import Threshold
from ..export import no_fast_graph
from ..fit_samples import BATCH, FitRows, fit_batches, fit_rows, reads_first_token
from ..tuning_comparison import TuningComparison
from .budget import check, check_least
from .later_stages import described_later, set_later
from .layer_costs import cost_fields, file_fields, int8_of, measured_costs
from .widths import planned_widths, pruned_dimensions, smallest, widths_of

if TYPE_CHECKING:
    from ....pruning.budget import Costs, Kept, UnitScores

_MEASURED = ("latency", "size_mb")


class PruneInfo(Threshold):
    """As `PruningRecord`, which it becomes part of; `points`: `PrunedPoint` as JSON."""

    budget: BudgetName
    score: ScoreName
    repair: RepairName | None
    examples: int
    repair_examples: int | None
    mean_length: float
    layer_heads: int
    layer_neurons: int
    whole: float
    points: list[dict[str, Any]]


def plan(draft: Draft, stage: Stage) -> None:
    draft.check_student(stage.id)
    sizes = draft.sizes[draft.current]
    if sizes.architecture not in {family.name for family in prunable_families()}:
        raise draft.fails(
            stage.id, f"{why_not_prunable(sizes.architecture)}; leave it out with --set {stage.id}.enabled=false"
        )
    spec: Prune = stage.spec
    if spec.score == "auto":
        spec = spec.model_copy(update={"score": "fisher" if draft.learns_labels else "obs"})
    if spec.score == "fisher" and not draft.learns_labels:
        raise draft.fails(
            stage.id,
            "score: fisher uses the loss on the task's labels, and no model is trained on those of "
            f"{draft.task.spec.kind} tasks; give --set {stage.id}.score=obs, which needs none",
        )
    described = {"budget": spec.budget, "budgets": list(spec.budgets), "examples": spec.examples}
    described |= {"score": spec.score, "repair": spec.repair, "seed": draft.seed} | described_threshold(draft)
    described |= {"widths": planned_widths(draft, stage)} if spec.budget == "widths" else {}
    described |= _measured_on(draft, stage) if spec.budget in _MEASURED else {}
    later, text = described_later(draft, stage.id, spec.budget)
    described |= later
    own = "student" if _is_recovered(draft, stage) else None
    suffix, outside = "pruned" if stage.id == "prune" else stage.id, {"data": draft.task.fingerprint} | text
    add_changed(draft, PRUNE, suffix, spec, described, stage=stage.id, outside=outside, own=own)


def _measured_on(draft: Draft, stage: Stage) -> dict[str, Any]:
    """What measured costs depend on."""
    if problem := no_fast_graph(draft, draft.current):
        raise draft.fails(
            stage.id, f"{stage.spec.budget} is measured on the fast graph, and {problem}; give a budget of flops"
        )
    int8 = int8_of(draft.recipe)
    form = {} if int8 is None else cost_fields(int8) | {"form": int8_format(int8, "int8")}
    timed = {"cpu": cpu_name(), "isa": list(isa()), "onnxruntime": versions()["onnxruntime"]}
    file = file_fields(draft.recipe, draft.task.spec.name, draft.task.data.labels)
    return {"int8": form} | (timed if stage.spec.budget == "latency" else {"file": file})


def _is_recovered(draft: Draft, stage: Stage) -> bool:
    """Whether a distill stage follows, which makes a pruned teacher a student."""
    after = draft.recipe.stages[draft.recipe.stages.index(stage) :]
    return any(later.kind == "distill" and later.is_enabled for later in after)


def run(job: Job[Prune]) -> PruneInfo:
    """Write the checkpoint of the last budget's model, of our own class unless all layers are alike with all their heads."""
    from ....training import make_accelerator
    from ...training.held_out import tuning_outputs
    from ...training.thresholds import choose_threshold

    folder, context, spec = job.inputs["model"].path, job.context, job.spec
    if spec.score == "auto":
        raise RuntimeError("the plan says which score it is")
    model: Any = load_classifier(folder, kind=context.kind, labels=context.labels, trained=True).eval()
    config = copy.deepcopy(model.config)
    set_later(job, model, config)
    model.to(make_accelerator(context.precision).device)  # in fp32: no autocast
    tokenizer, longest = load_tokenizer(folder), context.task.spec.max_length
    pad = pad_id(read_config(folder))
    encoded, tuning = (context.task.encoded(split, tokenizer, longest) for split in ("train", "tuning"))
    length = float(encoded.lengths.mean())
    costs = _costs(job, model, config, length)
    data = TaskBatches(encoded, batch_size=BATCH, pad_id=pad, seed=job.node.seed)
    scores, examples = _SCORES[spec.score](job, model, data)
    comparison = TuningComparison(
        context.task.data, tuning.labels, partial(tuning_outputs, context.task.data, tuning, pad), model
    )
    pruning = _Pruning(job, model, scores, costs, length, data, comparison)
    pruned: Any = None
    whole, points = comparison.points(comparison.whole), list[PrunedPoint]()
    counted = "flops" if spec.budget == "widths" else spec.budget
    for pruned, point in pruning.points():
        points.append(point)
        repaired = "" if point.repaired is None else f", {point.repaired:.1f} repaired"
        context.notice(
            f"{job.node.id}: {_sizes(job, pruned)}, {counted} {point.reached:.3g}; tuning score {whole:.1f} whole, {point.pruned:.1f} "
            f"pruned{repaired}, without training"
        )
    sizes = _sizes(job, model)
    decided = choose_threshold(pruned, tokenizer, context, stage=job.node.id)
    save_checkpoint(pruned.cpu(), tokenizer, job.out)
    return {
        **decided,
        "budget": spec.budget,
        "score": spec.score,
        "repair": spec.repair or None,
        "examples": examples,
        "repair_examples": len(_fit_rows(job, data)) if spec.repair else None,
        "mean_length": length,
        "layer_heads": sizes.heads,
        "layer_neurons": sizes.intermediate,
        "whole": whole,
        "points": [point.model_dump(mode="json") for point in points],
    }


def _fisher(job: Job[Prune], model: Any, data: TaskBatches) -> tuple[Sequence[UnitScores], int]:
    """Score heads and neurons by the loss; return the scores and the number of examples used."""
    from ....objective import Objective
    from ....pruning.scores import fisher_scores, mask_gradients

    gradients = mask_gradients(
        model,
        Objective((HardLabel(),), kind=job.context.kind),
        data,
        examples=job.spec.examples,
        on_progress=lambda done, total: job.context.listener.progress("judging by examples", done, total),
    )
    return fisher_scores(gradients), len(gradients[0].heads)


def _obs(job: Job[Prune], model: Any, data: TaskBatches) -> tuple[Sequence[UnitScores], int]:
    """Score heads and neurons by the error of layers; return the orders and the number of examples used."""
    from ....pruning.obs import removal_orders

    rows = _fit_rows(job, data)
    orders = removal_orders(
        model,
        fit_batches(data, rows.held, model.device),
        first_token=reads_first_token(HEADS[job.context.kind]),
        further=partial(fit_batches, data, rows.further, model.device),
        on_progress=lambda done, total: job.context.listener.progress("judging layers", done, total),
    )
    return orders, len(rows.held)  # the last layer alone uses more


def _fit_rows(job: Job[Prune], data: TaskBatches) -> FitRows:
    return fit_rows(data, job.spec.examples, HEADS[job.context.kind])


_SCORES = {"fisher": _fisher, "obs": _obs}


def _costs(job: Job[Prune], model: Any, config: Any, length: float) -> Costs:
    """Return the cost of widths with this `config`, in the unit of the budget; CompressError if even the model's smallest shape exceeds
    it."""
    from ....pruning.budget import flops_costs

    sizes, budget = _sizes(job, model), job.spec.budget
    if budget in _MEASURED:
        costs = measured_costs(job, config, length=round(length) if budget == "latency" else None).costs(sizes)
    else:
        costs = flops_costs(sizes, length)
    if job.spec.budgets:
        check_least(job.plan, job.node, costs.least / _unit(budget, costs), vocabulary=config.vocab_size)
    return costs


def _unit(budget: str, costs: Costs) -> float:
    """The cost that a budget of 1 stands for: that of the whole model, or 1,000,000 bytes."""
    return 1e6 if budget == "size_mb" else costs.whole


@dataclass(frozen=True)
class _Pruning:
    """Prunes the model at each budget. `length`: mean length of train's texts."""

    job: Job[Prune]
    model: Any
    scores: Sequence[UnitScores]
    costs: Costs
    length: float
    data: TaskBatches
    comparison: TuningComparison

    def points(self) -> Iterator[tuple[Any, PrunedPoint]]:
        """Yield the model at each budget, or with the given widths, pruned and repaired."""
        from ....pruning.budget import best_units, choose

        spec, costs = self.job.spec, self.costs
        if spec.budget == "widths":
            counts = [count for pair in widths_of(spec, _sizes(self.job, self.model)) for count in pair]
            yield self._prune_to(best_units(self.scores, counts))
        unit = _unit(spec.budget, costs)
        for budget in spec.budgets:
            yield self._prune_to(choose(self.scores, costs, max(budget * unit, costs.least)), budget)

    def _prune_to(self, kept: Kept, budget: float | None = None) -> tuple[Any, PrunedPoint]:
        """Return the model with these heads and neurons; `budget`: the one that they were chosen for."""
        from ....models.pruned.model import shape_of
        from ....pruning.removal import without_units

        job, comparison = self.job, self.comparison
        pruned = without_units(self.model, kept.heads, kept.neurons)
        which = "of these widths" if budget is None else f"at {job.spec.budget} {budget:g}"
        alone, repaired = comparison.predict(pruned), None
        if job.spec.repair:
            _repair(job, pruned, self.model, self.data, which)
            repaired = comparison.predict(pruned)
        shape = shape_of(pruned)
        before, after = (_sizes(job, each).layers_flops(self.length) for each in (self.model, pruned))
        reached = self.costs.of(shape) / _unit(job.spec.budget, self.costs)
        return pruned, PrunedPoint(
            budget=reached if budget is None else budget,
            reached=reached,
            heads=shape.heads,
            neurons=shape.neurons,
            flops=after / before,
            pruned=comparison.points(alone),
            repaired=None if repaired is None else comparison.points(repaired),
            delta=comparison.delta(alone if repaired is None else repaired),
            divergence=comparison.divergence(alone),
            repaired_divergence=None if repaired is None else comparison.divergence(repaired),
            same=comparison.same(alone),
            repaired_same=None if repaired is None else comparison.same(repaired),
        )


def _sizes(job: Job[Prune], model: Any) -> Dimensions:
    return dimensions(model.config.to_dict(), classes=job.plan.sizes[job.node.model].classes, kind=job.context.kind)


def _repair(job: Job[Prune], pruned: Any, model: Any, data: TaskBatches, which: str) -> None:
    from ....pruning.repair import repair

    rows = _fit_rows(job, data)
    repair(
        pruned,
        model,
        fit_batches(data, rows.held, model.device),
        first_token=reads_first_token(HEADS[job.context.kind]),
        further=partial(fit_batches, data, rows.further, model.device),
        on_progress=lambda done, total: job.context.listener.progress(f"repairing layers {which}", done, total),
    )


PRUNE = Kind(
    "prune",
    7,
    Prune,
    run=run,
    plan=plan,
    check=check,
    libraries=TRAINING,
    checkpoint=True,
    resized=pruned_dimensions,
    smallest=smallest,
)
