"""What quantization asks of a task's texts: batches to calibrate on, and how a candidate answers the tuning split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..tasks import headline, score
from .context import Context

if TYPE_CHECKING:
    from ..quantize.search import Judge
    from ..tasks import Encoded

_FEW = 256  # texts that tell products apart
_PROFILED = (1, 128)  # batch and length


def spread(encoded: Encoded, pad: int, count: int, *, tokens: int = 4096) -> list[dict[str, np.ndarray]]:
    """Padded batches of `count` texts (all, where there are fewer), evenly spread over those sorted by length; a batch
    has at most `tokens` of them, padding included."""
    from ..tasks import collate, sorted_chunks

    chosen = _even(encoded, count)
    return [collate(encoded, chosen[chunk], pad) for chunk in sorted_chunks(encoded.lengths[chosen], tokens)]


def judge(context: Context, tuning: Encoded, pad: int, count: int, folder: Path) -> Judge:
    """On the tuning split; `count` of its texts are given out as batches."""
    from ..evaluate import predict_onnx
    from ..quantize.search import Judge

    data, few = context.task.data, tuning.take(np.sort(_even(tuning, _FEW)))
    return Judge(
        few=lambda path: predict_onnx(path, few, pad, threads=context.threads),
        all=lambda path: predict_onnx(path, tuning, pad, threads=context.threads),
        score=lambda logits: headline(score(data.spec, data.labels, logits, data.tuning.labels)),
        times=_times,
        feeds=spread(tuning, pad, count),
        decides=data.spec.kind != "regression",
        folder=folder,
        on_progress=lambda done, total: context.listener.progress("products", done, total),
    )


def _even(encoded: Encoded, count: int) -> np.ndarray:
    order = np.argsort(encoded.lengths, kind="stable")
    return order[np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)]


def _times(path: Path) -> dict[str, float]:
    """Node -> milliseconds of one text of 128 tokens on one thread."""
    from ..bench.operators import operators

    batch, length = _PROFILED
    return {operator.name: operator.milliseconds for operator in operators(path, [length] * batch)[1]}
