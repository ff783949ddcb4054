"""FLOP/s of a training stage, and its share of the GPU's peak."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from ...corpus.masking import SELECTED
from ...losses.features import BEFORE_LAYERS, LOGITS
from ...machine import BF16_PEAKS
from ...models.dimensions import Dimensions, dimensions
from ...models.features.dropout import draw_quickly
from ...models.features.named import compute_features
from ...models.features.predict import to_tensors
from ...models.heads import HEADS, head_of
from ...models.random_models import random_classifier
from ...processes.shared_settings import use_threads
from ...spec.kinds import KindName
from .info import Speed
from .log import Totals

_FEWEST_TEXTS, _MOST_TEXTS, _PROBE_TOKENS = 8, 32, 1024  # of a probe's step: for short texts as many as a batch has
_PROBE_STEPS, _PROBE_SECONDS = 2, 0.5  # at least


def model_flops(
    student: Dimensions, teacher: Dimensions | None, *, length: float, words: float = 0.0, teacher_words: float = 0.0
) -> float:
    """Return the FLOPs (multiply-adds × 2) of the matrix products by which a model learns from one text of `length` tokens.

    A forward of the student, a backward, which costs two, and a forward of the teacher, if one runs: 6 for each weight and token, and 12 ·
    layers · hidden · length of attention for each token (Chowdhery et al. 2022, PaLM, arXiv:2204.02311, appendix B), with 2 and 4 for the
    teacher's. `words`: tokens for which a masked-LM head scores the vocabulary, `teacher_words`: those for which the teacher's does.
    Look-ups, losses between layers and the optimizer are not counted.
    """
    teacher_flops = 0.0 if teacher is None else _forward(teacher, length, teacher_words)
    return 3 * _forward(student, length, words) + teacher_flops


def _forward(sizes: Dimensions, length: float, words: float) -> float:
    return sizes.flops_per_example(length) + 2 * words * sizes.embedding * (sizes.hidden + sizes.vocabulary)


def speed(model: Any, teacher: Any, objective: Any, totals: Totals, accelerator: Accelerator) -> Speed:
    """Return `tokens_per_second`, None if no step was logged, and `model_flops_per_second`, None also if the stage runs no layer of the
    model; on a GPU with a known peak also `utilisation`, the share of its bf16 peak, 0 to 1. `teacher`: the one that runs during training,
    if any."""
    rate = totals.tokens / totals.seconds if totals.seconds else None
    if rate is None or not _runs_layers(objective.student_features):
        return {"tokens_per_second": rate, "model_flops_per_second": None}
    length = totals.tokens / totals.examples
    teacher_sizes = _sizes(teacher) if teacher is not None and _runs_layers(objective.teacher_features) else None
    words, teacher_words = (SELECTED * length if runs else 0.0 for runs in objective.heads_run)
    each = model_flops(_sizes(model), teacher_sizes, length=length, words=words, teacher_words=teacher_words)
    flops, peak = each / length * rate, _peak(accelerator)
    rates: Speed = {"tokens_per_second": rate, "model_flops_per_second": flops}
    if peak is not None:
        rates["utilisation"] = flops / peak
    return rates


def _runs_layers(features: frozenset[str]) -> bool:
    """Whether features beyond the embeddings are needed, so that layers run."""
    return any(name not in BEFORE_LAYERS for name in features)


def probe(config: dict[str, Any], *, kind: KindName, length: int, precision: str, threads: int) -> float:
    """Measure the FLOP/s of training on this machine, by a few steps of a random model of this config on texts of `length` tokens, computed
    as the training loop does."""
    sizes = dimensions(config, classes=0 if HEADS[kind].bare else 2, kind=kind)
    use_threads(threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.random.fork_rng():
        model: Any = random_classifier(config, kind=kind, labels=("0", "1")).to(device).train()
        draw_quickly(model)
        count = max(_FEWEST_TEXTS, min(_MOST_TEXTS, _PROBE_TOKENS // length))
        ones = np.ones((count, length), np.int64)
        texts = {"input_ids": ones, "attention_mask": ones, "token_type_ids": np.zeros_like(ones)}
        batch = to_tensors(texts, torch.device(device))
        taken: list[float] = []
        while len(taken) < 1 + _PROBE_STEPS or sum(taken[1:]) < _PROBE_SECONDS:  # the first one warms up
            start = time.perf_counter()
            with torch.autocast(device, dtype=torch.bfloat16, enabled=precision == "bf16"):
                outputs = compute_features(model, batch, (LOGITS,))[LOGITS]
            outputs.float().square().mean().backward()
            if device == "cuda":
                torch.cuda.synchronize()  # until now the work was only queued
            taken.append(time.perf_counter() - start)
    return count * model_flops(sizes, None, length=length) / min(taken[1:])


def _sizes(model: Any) -> Dimensions:
    head = head_of(model)
    kind: KindName = "tagging" if head.per_token else "classification"  # whose sizes are those of all such heads
    return dimensions(model.config.to_dict(), classes=0 if head.bare else model.config.num_labels, kind=kind)


def _peak(accelerator: Accelerator) -> float | None:
    """Bf16 peak of all GPUs of the run together; None if unknown, or if the run does not use bf16 on a GPU."""
    if accelerator.device.type != "cuda" or accelerator.mixed_precision != "bf16":
        return None
    peak = BF16_PEAKS.get(torch.cuda.get_device_name(accelerator.device))
    return None if peak is None else peak * accelerator.num_processes
