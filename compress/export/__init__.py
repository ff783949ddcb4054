"""A transformers checkpoint becomes one ONNX file: fixed names, dynamic shapes, checked against torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import CompressError
from ..graphs import check_model, products, set_metadata, write_model
from .cleaning import clean
from .parity import check_parity
from .tracing import Traced, load, trace

__all__ = ["export_onnx"]


def export_onnx(
    checkpoint: Path, out: Path, *, opset: int, task_name: str, labels: tuple[str, ...], kind: str
) -> dict[str, Any]:
    """Write `out`/model.onnx, fp32, and check it: the ONNX checker, then parity with torch.

    Inputs: int64 [batch, length] `input_ids`, `attention_mask` and, where the model has more than one
    segment, `token_type_ids`. Output: float32 `logits` [batch, class]. The metadata names task, kind and labels.
    Returns the largest error per shape and the counts of nodes and matrix products. CompressError: the
    checkpoint; CheckFailed: the outcome, and then no file is left.
    """
    traced = load(Path(checkpoint))
    _check_labels(Path(checkpoint), traced, labels, kind)
    model = trace(traced, opset)
    clean(model)
    set_metadata(model, _metadata(traced, task_name, labels, kind))
    path = Path(out) / "model.onnx"
    write_model(model, path)
    try:
        check_model(path)
        errors = check_parity(traced, path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    found = products(model.graph)
    return {
        "opset": opset,
        "bytes": path.stat().st_size,
        "nodes": len(model.graph.node),
        "weight_matmuls": len(found.fp32),
        "activation_matmuls": len(found.activation),
        "parity_max_abs_error": errors,
    }


def _check_labels(checkpoint: Path, traced: Traced, labels: tuple[str, ...], kind: str) -> None:
    expected = 1 if kind == "regression" else len(labels)
    if traced.classes != expected:
        raise CompressError(
            f"{checkpoint / 'config.json'}: expected {expected} outputs for the task, found {traced.classes}; "
            "use the checkpoint fine-tuned on this task"
        )


def _metadata(traced: Traced, task_name: str, labels: tuple[str, ...], kind: str) -> dict[str, str]:
    return {
        "task": task_name,
        "kind": kind,
        "labels": json.dumps(list(labels), ensure_ascii=False),
        "max_length": str(traced.max_length),
        "vocab_size": str(traced.vocab_size),
    }
