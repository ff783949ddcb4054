"""Export a transformers checkpoint to one ONNX file: fixed names, dynamic shapes, checked against torch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx import ModelProto

from ..errors import CheckFailed, CompressError
from ..graphs.matmuls import matmuls
from ..graphs.model_files import check_model, get_metadata, set_metadata, write_model
from ..graphs.shared_weights import share_weights
from ..models.fast_graph import check_fast_graph
from ..models.heads import HEADS
from ..runtime.folder import unpadded_beside
from ..runtime.kinds import output_names
from ..runtime.passages import THRESHOLD
from ..spec.kinds import KindName
from .cleaning import clean
from .fast import build_fast, first_difference, has_layers
from .parity import Logits, Parity, check_parity, fast_tolerance, torch_logits
from .tracing import SEGMENTS, Traced, describe, load, trace

__all__ = ["export_onnx"]


def export_onnx(
    checkpoint: Path,
    out: Path,
    *,
    opset: int,
    task_name: str,
    labels: tuple[str, ...],
    kind: KindName,
    graph: str,
    pairs: bool = True,
) -> dict[str, Any]:
    """Write `out`/model.onnx, fp32, and check it with the ONNX checker and for parity with torch.

    The fast graph of a model with layers also gets an unpadded form, checked the same way: model_unpadded.onnx, without
    weights of its own.

    Inputs: int64 [batch, length] `input_ids`, `attention_mask` and, if the model has more than one segment,
    `token_type_ids`; the fast graph of a task whose examples are not `pairs` has no such input. Output: float32 `logits`
    [batch, class], or `sentence_embedding` [batch, hidden], each of length 1. The metadata names task, kind and labels, and
    for a question-answering model the no-answer threshold, if config.json has one. `graph`: `plain`, from torch's exporter,
    or `fast`, from `build_fast`.

    Return the largest error per shape, how far rounding moves the answers if the model amplifies it, and the counts of nodes
    and matmuls. CompressError: the checkpoint. CheckFailed: the result; then no file is left.
    """
    traced = _load(Path(checkpoint), kind, graph, pairs=pairs)
    if not HEADS[kind].bare:
        _check_outputs(Path(checkpoint), traced, len(output_names(kind, labels)))
    model = _build(Path(checkpoint), traced, graph, opset)
    set_metadata(model, _metadata(traced, task_name, labels))
    path = Path(out) / "model.onnx"
    unpadded = unpadded_beside(path)
    unpadded.unlink(missing_ok=True)  # of an earlier file
    try:
        logits = torch_logits(traced)
        parity, unpadded_parity = _write(traced, model, path, graph, logits), Parity({}, {})
        if graph == "fast" and has_layers(traced.model):
            unpadded_parity = _write(traced, _unpadded_graph(traced, model, path), unpadded, "unpadded", logits)
    except BaseException:
        path.unlink(missing_ok=True)
        unpadded.unlink(missing_ok=True)
        raise
    return _info(graph, model, path, parity, unpadded_parity)


def _info(graph: str, model: ModelProto, path: Path, parity: Parity, unpadded_parity: Parity) -> dict[str, Any]:
    """Return what is recorded of a graph, its file, and the parity of its two forms with torch."""
    matmul_names, rounding = matmuls(model.graph), dict(parity.rounding)
    for shape, moved in unpadded_parity.rounding.items():
        rounding[shape] = max(moved, rounding.get(shape, 0.0))
    return {
        "graph": graph,
        "opset": model.opset_import[0].version,
        "bytes": path.stat().st_size,
        "nodes": len(model.graph.node),
        "weight_matmuls": len(matmul_names.fp32) + len(matmul_names.stacked),
        "activation_matmuls": len(matmul_names.activation),
        "parity_max_abs_error": parity.errors,
        "unpadded_parity_max_abs_error": unpadded_parity.errors,
        **({"moved_by_rounding": rounding} if rounding else {}),
    }


def _write(traced: Traced, model: ModelProto, path: Path, form: str, logits: Logits) -> Parity:
    write_model(model, path)
    check_model(path)
    return _parity(traced, path, form, model.opset_import[0].version, logits)


def _unpadded_graph(traced: Traced, model: ModelProto, path: Path) -> ModelProto:
    """Return the unpadded form of the fast graph `model`, which is stored in `path`."""
    pairs, opset = SEGMENTS in traced.inputs, model.opset_import[0].version
    unpadded = build_fast(traced.model, kind=traced.kind, pairs=pairs, opset=opset, unpadded=True)
    if unpadded is None:
        raise RuntimeError("a model that has a fast graph has an unpadded one")
    set_metadata(unpadded, get_metadata(model))
    share_weights(unpadded, path)
    return unpadded


def unchecked_graph(checkpoint: Path, *, opset: int, kind: KindName, graph: str, pairs: bool) -> ModelProto:
    """Return the graph that `export_onnx` writes, without metadata; nothing is written, and no answers are compared."""
    return _build(checkpoint, _load(checkpoint, kind, graph, pairs=pairs), graph, opset)


def graph_of(
    model: Any, *, opset: int, task_name: str, labels: tuple[str, ...], kind: KindName, graph: str, pairs: bool
) -> ModelProto:
    """Return the graph, with metadata, that `export_onnx` writes for a transformers model; nothing is checked."""
    traced = _of_segments(describe(model.eval(), kind), graph, pairs=pairs)
    proto = _build(Path(), traced, graph, opset)
    set_metadata(proto, _metadata(traced, task_name, labels))
    return proto


def _load(checkpoint: Path, kind: KindName, graph: str, *, pairs: bool) -> Traced:
    return _of_segments(load(checkpoint, kind), graph, pairs=pairs)


def _of_segments(traced: Traced, graph: str, *, pairs: bool) -> Traced:
    """Leave out the input for segments where the fast graph has none."""
    if graph == "fast" and not pairs:
        return replace(traced, inputs=tuple(name for name in traced.inputs if name != SEGMENTS))
    return traced


def _build(checkpoint: Path, traced: Traced, graph: str, opset: int) -> ModelProto:
    if graph == "fast":
        return _fast(checkpoint, traced, opset)
    model = trace(traced, opset)
    clean(model)
    return model


def _fast(checkpoint: Path, traced: Traced, opset: int) -> ModelProto:
    check_fast_graph(traced.model.config.to_dict(), str(checkpoint / "config.json"))
    model = build_fast(traced.model, kind=traced.kind, pairs=SEGMENTS in traced.inputs, opset=opset)
    if model is None:
        raise RuntimeError("a model that has all parts has a fast graph")
    return model


def _parity(traced: Traced, path: Path, form: str, opset: int, logits: Logits) -> Parity:
    """Run `check_parity`; if a fast graph fails, the message names the first part that differs."""
    if form == "plain":
        return check_parity(traced, path, logits)
    try:
        return check_parity(traced, path, logits, fast_tolerance(traced.model.config.num_hidden_layers))
    except CheckFailed as error:
        part = first_difference(traced, opset=opset, unpadded=form == "unpadded")
        where = "no part differs by itself" if part is None else f"the first part that differs is {part}"
        raise CheckFailed(f"{error}; {where}") from None


def _check_outputs(checkpoint: Path, traced: Traced, expected: int) -> None:
    if traced.classes != expected:
        raise CompressError(
            f"{checkpoint / 'config.json'}: expected {expected} outputs for the task, found {traced.classes}; "
            "use the checkpoint fine-tuned on this task"
        )


def _metadata(traced: Traced, task_name: str, labels: tuple[str, ...]) -> dict[str, str]:
    threshold = getattr(traced.model.config, THRESHOLD, None)
    return {
        **({} if threshold is None else {THRESHOLD: repr(float(threshold))}),
        "task": task_name,
        "kind": traced.kind,
        "labels": json.dumps(list(labels), ensure_ascii=False),
        "max_length": str(traced.max_length),
        "vocab_size": str(traced.vocab_size),
    }
