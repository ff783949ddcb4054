"""quantize_aware: train the last model with the rounding of its int8 file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.checkpoints.folders import load_classifier, load_tokenizer, pad_id, save_checkpoint
from ...models.fast_graph import fast_graph_is_for
from ...models.layer_maps import check_losses, matched_layers
from ...processes import ranks
from ...spec.quantization import Quantize
from ...spec.recipe import Recipe, Stage
from ...spec.stages import QuantizeAware
from ..plan import TRAINING, Context, Draft, Job, Kind
from ..plan.changed import add_changed
from ..plan.fields import check_layer_map, described_threshold, for_task, seeded_fields
from ..plan.vectors import vector_losses
from ..training.info import TrainingInfo
from .calibration import calibrated_on, calibration
from .export import no_fast_graph
from .quantize import tuning_fidelity
from .unscored import unscored_notes

if TYPE_CHECKING:
    from torch import nn

    from ...models.fake_quant.classifier import FakeQuant
    from ...objective import Objective

# Fields of `quantize` that training depends on: what is rounded, and the initial ranges.
_READ = {"per_channel", "reduce_range", "embeddings", "exclude", "calibration_examples", "calibration", "percentile"}


def plan(draft: Draft, stage: Stage) -> None:
    before = draft.current
    draft.check_student(stage.id)
    if problem := no_fast_graph(draft, before):
        raise draft.fails(
            stage.id,
            f"trains what the fast graph computes; {fast_graph_is_for()}, and {problem}: leave it out with "
            f"--set {stage.id}.enabled=false --set quantize.method=smoothquant",
        )
    if not draft.sizes[before].layers:
        raise draft.fails(
            stage.id,
            f"trains layers for int8, and a {draft.sizes[before].architecture} has none; its int8 file needs no training: leave it out "
            f"with --set {stage.id}.enabled=false --set quantize.method=smoothquant",
        )
    spec = vector_losses(draft, for_task(draft, (stage.spec,), QuantizeAware), stage.id, against=before, student=before)
    sizes, where = draft.sizes[before], f"recipe {draft.recipe.name}, stage {stage.id}, model {before}"
    check_losses(spec.losses, student=sizes, teacher=sizes, where=where)
    check_layer_map(draft, spec, stage.id, before, before)
    draft.notes.extend(unscored_notes(stage.id, stage.spec.for_task(draft.task.spec.name), spec.losses))
    if spec.ranges != "learned" and spec.range_step != QuantizeAware.model_fields["range_step"].default:
        draft.notes.append(
            f"{stage.id}.range_step has no effect: `ranges: {spec.ranges}` takes no step; `learned` does"
        )
    described = seeded_fields(draft, spec, draft.seed) | {"precision": "fp32"} | described_threshold(draft)
    described |= {"quantize": quantize_spec(draft.recipe).model_dump(mode="json", include=_READ)}
    if spec.ranges == "moving_average" and (spec.micro_batch_size or spec.batch_size) < spec.batch_size:
        described |= {"moves": "once per step"}  # earlier versions moved ranges with every micro-batch
    outside = calibrated_on(draft, quantize_spec(draft.recipe))
    add_changed(draft, QUANTIZE_AWARE, "qat", spec, described, stage=stage.id, outside=outside)


def quantize_spec(recipe: Recipe) -> Quantize:
    """How the trained model will be quantized."""
    return next(stage.spec for stage in recipe.stages if stage.kind == "quantize")


def run(job: Job[QuantizeAware]) -> TrainingInfo:
    """Train the model with int8 rounding against itself without; write a plain checkpoint, and the ranges of its activations.

    It trains in fp32 whatever the run's precision: bf16 rounds as coarsely as the int8 that it is to learn. `fidelity`: on the tuning
    split, compared with the original model, with the calibrated ranges before training, and after it.
    """
    import torch

    from ...models.fake_quant.classifier import fake_quantized
    from ...quantize.qat_params import Trained
    from ...quantize.ranges import Range
    from ..training.run import TrainingRun

    folder, context = job.inputs["model"].path, replace(job.context, precision="fp32")
    model, teacher = (load_classifier(folder, kind=context.kind, labels=context.labels, trained=True) for _ in range(2))
    tokenizer = load_tokenizer(folder)
    torch.manual_seed(job.node.seed)
    alone = replace(job, inputs={}, context=context)
    training = TrainingRun(alone, model, _objective(job), unsharded_because="its rounding is part of the forward")
    quant = _fake_quant(alone, model, tokenizer)
    expected = _logits(teacher, context, tokenizer)
    with fake_quantized(model, quant):
        calibrated = _logits(model, context, tokenizer)
        info = training.with_threshold(tokenizer, training.learn_task(tokenizer, teacher))
        trained = _logits(model, context, tokenizer)
        ranges = {name: Range(*ends) for name, ends in quant.input_ranges().items()}
        factors, channel_repeats = (
            {name: value.cpu().numpy() for name, value in tensors.items()}
            for tensors in (quant.smoothing(), quant.channel_repeats())
        )
    save_checkpoint(model.eval(), tokenizer, job.out)
    Trained(ranges, factors, channel_repeats).write(job.out)
    after = {"calibrated": calibrated, "trained": trained}
    info["fidelity"] = {name: tuning_fidelity(expected, logits, context) for name, logits in after.items()}
    return info


def _fake_quant(job: Job[QuantizeAware], model: nn.Module, tokenizer: Any) -> FakeQuant:
    """Return what becomes int8 in the fast graph of `model`, with calibrated initial ranges."""
    from ...export.fast import build_fast
    from ...models.fake_quant.classifier import FakeQuant
    from ...quantize.qat_params import quant_spec_of
    from ...quantize.ranges import calibrate
    from ...quantize.smoothing import Smoothing, find_factors, smooth

    spec, context, quantize = job.spec, job.context, quantize_spec(job.plan.recipe)
    graph = build_fast(model, kind=context.kind, pairs=context.task.spec.pairs)
    if graph is None:
        raise RuntimeError("export refuses what has no fast graph")
    form, choice = quant_spec_of(graph, quantize)
    feeds = calibration(context, quantize, tokenizer, _pad(model), job.node.outside)
    # These fields are not in the stage's key.
    searched = quantize.model_copy(update={"alpha": None, "outlier_splitting": True})
    smoothing = find_factors(graph, choice, feeds, searched) if spec.smooth else Smoothing()
    # Processes that train together, maybe on different CPUs, all use what the first one found.
    factors, channel_repeats = (
        {name: np.array(values, kind) for name, values in ranks.broadcast(_to_lists(arrays)).items()}
        for arrays, kind in ((smoothing.factors, np.float32), (smoothing.channel_repeats, np.int64))
    )
    if factors:
        graph = smooth(graph, factors, fold=quantize.per_channel)
        form, _ = quant_spec_of(graph, quantize)
    sources = tuple(dict.fromkeys(use.source for use in form.uses if use.source is not None))
    start = calibrate(graph, sources, feeds, method=quantize.calibration, percentile=quantize.percentile)
    ends = ranks.broadcast({name: (span.low, span.high) for name, span in start.items()})
    gain = spec.range_step / spec.learning_rate
    return FakeQuant(form, ends, ranges=spec.ranges, gain=gain, factors=factors, channel_repeats=channel_repeats)


def _to_lists(arrays: dict[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in arrays.items()}


def _objective(job: Job[QuantizeAware]) -> Objective:
    from ...objective import Objective

    spec, sizes = job.spec, job.plan.sizes[job.node.model]
    pairs = matched_layers(spec, student_layers=sizes.layers, teacher_layers=sizes.layers)
    return Objective(spec.losses, layers=pairs, widths=(sizes.hidden, sizes.hidden), kind=job.context.kind)


def _logits(model: nn.Module, context: Context, tokenizer: Any) -> np.ndarray:
    """Return the logits [text, class] of the tuning split."""
    from ...models.features.predict import predict_logits

    encoded = context.task.encoded("tuning", tokenizer, context.task.spec.max_length)
    return predict_logits(model, encoded, _pad(model))


def _pad(model: Any) -> int:
    return pad_id(model.config.to_dict())


QUANTIZE_AWARE = Kind(
    "quantize_aware",
    8,
    QuantizeAware,
    run=run,
    plan=plan,
    libraries=(*TRAINING, "onnxruntime"),
    trains=True,
    checkpoint=True,
)
