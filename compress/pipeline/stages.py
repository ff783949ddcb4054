"""Stages: plain functions from a node and its input artefacts to a directory. Heavy imports are inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CompressError
from ..models.checkpoints import load_tokenizer, pad_id
from ..models.dimensions import read_config
from ..spec.stages import CALIBRATED
from ..store import Artifact
from ..tasks import headline, score
from .context import Context
from .draft import Node
from .plan import Plan

Inputs = dict[str, Artifact]
Stage = Callable[[Plan, Node, Inputs, Context, Path, Path], dict[str, Any]]


def adopt(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """A fine-tuned teacher of the user's, checked and brought into the task's label order -> checkpoint."""
    from .adoption import adopt_teacher

    return adopt_teacher(plan.teacher, context, out)


def export(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """A checkpoint -> `model.onnx`, fp32."""
    from ..export import export_onnx

    (checkpoint,) = inputs.values()
    spec = context.task.spec
    return export_onnx(
        checkpoint.path,
        out,
        graph=node.spec.graph,
        opset=node.spec.opset,
        task_name=spec.name,
        labels=context.labels,
        kind=spec.kind,
        pairs=len(spec.text) == 2,
    )


def quantize(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """fp32 ONNX -> an int8 file, with how far its logits are from fp32 on the tuning split."""
    from ..evaluate import predict_onnx
    from ..quantize import quantize_onnx
    from ..runtime.folder import MODEL_FILES

    checkpoint, source = inputs.values()
    precision, fp32_file = node.id.rpartition("-")[2], source.path / "model.onnx"
    layout, name = node.spec.layout(precision), MODEL_FILES[precision]
    tokenizer, pad = load_tokenizer(checkpoint.path), pad_id(read_config(checkpoint.path))
    feeds = _calibration(context, tokenizer, pad, node.spec.calibration_examples) if layout in CALIBRATED else []
    info = quantize_onnx(fp32_file, out, node.spec.form(precision), layout=layout, feeds=feeds, name=name)
    tuning = context.task.encoded("tuning", tokenizer, context.task.spec.max_length)
    fp32, int8 = (predict_onnx(path, tuning, pad, threads=context.threads) for path in (fp32_file, out / name))
    return {**info, "calibration_examples": sum(map(_rows, feeds)), "fidelity": _fidelity(fp32, int8, context)}


def _calibration(context: Context, tokenizer: Any, pad: int, count: int) -> list[dict[str, np.ndarray]]:
    """Padded batches of `count` training texts (all, where there are fewer), evenly spread over those sorted by length."""
    from ..tasks import collate, sorted_chunks

    encoded = context.task.encoded("train", tokenizer, context.task.spec.max_length)
    order = np.argsort(encoded.lengths, kind="stable")
    chosen = order[np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)]
    return [collate(encoded, chosen[chunk], pad) for chunk in sorted_chunks(encoded.lengths[chosen])]


def _rows(feed: dict[str, np.ndarray]) -> int:
    return len(feed["input_ids"])


def _fidelity(fp32: np.ndarray, int8: np.ndarray, context: Context) -> dict[str, Any]:
    """On the tuning split: decisions that flip, mean |Δlogit|, and both scores in points."""
    data = context.task.data
    scores = [headline(score(data.spec, data.labels, logits, data.tuning.labels)) for logits in (fp32, int8)]
    flips = None if data.spec.kind == "regression" else int((fp32.argmax(1) != int8.argmax(1)).sum())
    return {
        "examples": len(fp32),
        "flips": flips,
        "mean_abs_logit_change": float(np.abs(fp32 - int8).mean()),
        "fp32_tuning_score": scores[0],
        "int8_tuning_score": scores[1],
    }


def tokenize(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """Plain text -> token shards in the teacher's vocabulary."""
    from ..corpus import corpus_fingerprint, tokenize_corpus

    if plan.corpus is None:
        raise RuntimeError("a tokenize stage is only planned with a corpus")
    if corpus_fingerprint(plan.corpus.sources) != plan.corpus.fingerprint:
        raise CompressError("the plain text changed since this command started; start it again")
    return tokenize_corpus(
        plan.corpus.sources,
        plan.teacher.tokenizer,
        out,
        work,
        max_tokens=node.spec,
        threads=context.threads,
        on_progress=lambda tokens: context.listener.progress("tokens", tokens, node.spec),
    )


def augment(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """Copies of the training examples with words replaced -> examples."""
    from .augmenting import augment_task

    return augment_task(plan, node, inputs, context, out, work)


def _trained(name: str) -> Stage:
    """The stages that train are in a module that needs torch, imported when one of them runs."""

    def make(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
        from . import training_stages

        return getattr(training_stages, name)(plan, node, inputs, context, out, work)

    return make


STAGES: dict[str, Stage] = {
    "finetune": _trained("finetune"),
    "adopt": adopt,
    "tokenize": tokenize,
    "masked_lm": _trained("masked_lm"),
    "general": _trained("general"),
    "augment": augment,
    "distill": _trained("distill"),
    "export": export,
    "quantize": quantize,
}
