"""The stage that trains a model as its int8 file will compute it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from .. import processes
from ..export.fast import build_fast
from ..models.checkpoints import load_classifier, load_tokenizer, pad_id, save_checkpoint
from ..models.fake_quant import FakeQuant, fake_quantized
from ..models.layer_maps import matched_layers
from ..models.predict import predict_logits
from ..objective import Objective
from ..quantize.calibration import calibrate
from ..quantize.given import Trained, int8_form
from ..quantize.ranges import Range
from ..quantize.smoothing import Smoothing, find_factors, smooth
from ..spec.stages import QuantizeAware
from ..store import Artifact
from .aware_planning import quantize_spec
from .context import Context
from .draft import Node
from .judging import calibration
from .plan import Plan
from .stages import fidelity
from .training_stages import TrainingRun


def quantize_aware(
    plan: Plan, node: Node, inputs: dict[str, Artifact], context: Context, out: Path, work: Path
) -> dict[str, Any]:
    """The last model, trained with the roundings of int8 against itself without -> checkpoint, and the ranges of its activations.

    It trains in fp32 whatever the run's precision: bf16 rounds as coarsely as the int8 that it is to learn.
    The checkpoint is a plain one. `fidelity`: on the tuning split, beside the model as it came, with the calibrated ranges
    before training, and after it.
    """
    context = replace(context, precision="fp32")
    model, teacher = (load_classifier(inputs["model"].path, labels=context.labels, trained=True) for _ in range(2))
    tokenizer, spec = load_tokenizer(inputs["model"].path), node.spec
    torch.manual_seed(node.seed)
    run = TrainingRun(node, {}, context, out, work, model, _objective(spec, plan.sizes[node.model]))
    quant = _start(plan, node, context, model, tokenizer)
    expected = _answers(teacher, context, tokenizer)
    with fake_quantized(model, quant):
        calibrated = _answers(model, context, tokenizer)
        info = run.learn_task(tokenizer, teacher)
        trained = _answers(model, context, tokenizer)
        ranges = {name: Range(*ends) for name, ends in quant.found().items()}
        factors, copies = (
            {name: value.cpu().numpy() for name, value in found.items()}
            for found in (quant.smoothing(), quant.copies())
        )
    save_checkpoint(model.eval(), tokenizer, out)
    Trained(ranges, factors, copies).write(out)
    found = {"calibrated": fidelity(expected, calibrated, context), "trained": fidelity(expected, trained, context)}
    return {**info, "fidelity": found}


def _start(plan: Plan, node: Node, context: Context, model: nn.Module, tokenizer: Any) -> FakeQuant:
    """What becomes int8 as the fast graph of `model` has it, and calibrated ranges to begin with."""
    task, quantize = context.task, quantize_spec(plan.recipe)
    graph = build_fast(model, pairs=len(task.spec.text) == 2)
    if graph is None:
        raise RuntimeError("export refuses what has no fast graph")
    form, choice = int8_form(graph, quantize)
    pad = pad_id(model.config.to_dict())  # type: ignore[operator]
    feeds = calibration(context, quantize, tokenizer, pad, node.outside)
    spec: QuantizeAware = node.spec
    # These are no part of the stage's key.
    searched = quantize.model_copy(update={"alpha": None, "split": True})
    found = find_factors(graph, choice, feeds, searched) if spec.smooth else Smoothing()
    # Of several processes that train, on different CPUs maybe, all have what the first one found.
    factors, copies = (
        {name: np.array(values, kind) for name, values in processes.broadcast(_listed(arrays)).items()}
        for arrays, kind in ((found.factors, np.float32), (found.copies, np.int64))
    )
    if factors:
        graph = smooth(graph, factors)
        form, _ = int8_form(graph, quantize)
    sources = tuple(dict.fromkeys(use.source for use in form.uses if use.source is not None))
    start = calibrate(graph, sources, feeds, method=quantize.calibration, percentile=quantize.percentile)
    ends = processes.broadcast({name: (span.low, span.high) for name, span in start.items()})
    gain = spec.range_step / spec.learning_rate
    return FakeQuant(form, ends, ranges=spec.ranges, gain=gain, factors=factors, copies=copies)


def _listed(arrays: dict[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in arrays.items()}


def _objective(spec: QuantizeAware, sizes: Any) -> Objective:
    pairs = matched_layers(spec, student_layers=sizes.layers, teacher_layers=sizes.layers)
    return Objective(spec.losses, layers=pairs, widths=(sizes.hidden, sizes.hidden))


def _answers(model: nn.Module, context: Context, tokenizer: Any) -> np.ndarray:
    """Logits [text, class] of the tuning split."""
    encoded = context.task.encoded("tuning", tokenizer, context.task.spec.max_length)
    return predict_logits(model, encoded, pad_id(model.config.to_dict()))  # type: ignore[operator]
