"""Stages: plain functions from a node and its input artefacts to a directory. Heavy imports are inside."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CompressError
from ..fidelity import flipped, logit_difference
from ..models.checkpoints import load_tokenizer, pad_id
from ..models.dimensions import read_config
from ..spec.quantization import INC, SMOOTHED
from ..store import Artifact
from ..tasks import headline, score
from .context import Context
from .draft import Node
from .plan import Plan

# Texts and padded tokens a batch: BERT-base gives out 0.2 GB of inner states for such a batch, and it does so twice.
_NOISE_TEXTS, _NOISE_TOKENS = 64, 512

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
    """fp32 ONNX -> an int8 file, with how far its logits, and what its parts give, are from fp32 on the tuning split."""
    from ..evaluate import predict_onnx
    from ..quantize import quantize_onnx
    from ..quantize.given import Trained
    from ..quantize.noise import signal_to_noise
    from ..runtime.folder import MODEL_FILES
    from .inc import quantize_checkpoint
    from .judging import calibration, judge, spread

    checkpoint, source = inputs.values()
    precision, fp32_file = node.id.rpartition("-")[2], source.path / "model.onnx"
    layout, name, spec = node.spec.layout(precision), MODEL_FILES[precision], node.spec.form(precision)
    tokenizer, pad = load_tokenizer(checkpoint.path), pad_id(read_config(checkpoint.path))
    tuning = context.task.encoded("tuning", tokenizer, context.task.spec.max_length)
    feeds = calibration(context, spec, tokenizer, pad, node.outside) if spec.calibrates(layout) else []
    asks = spec.method in (*SMOOTHED, INC)
    asked = judge(context, tuning, pad, spec.calibration_examples, work) if asks else None
    trained = Trained.read(checkpoint.path) if spec.method == "qat" else None
    if spec.method == INC:
        info = quantize_checkpoint(checkpoint.path, fp32_file, out, spec, feeds=feeds, judge=asked, name=name)
    else:
        info = quantize_onnx(fp32_file, out, spec, layout=layout, feeds=feeds, judge=asked, trained=trained, name=name)
    fp32, int8 = (predict_onnx(path, tuning, pad, threads=context.threads) for path in (fp32_file, out / name))
    return {
        **info,
        "calibration_examples": sum(map(_rows, feeds)),
        "fidelity": fidelity(fp32, int8, context),
        "signal_to_noise_db": signal_to_noise(
            fp32_file, out / name, spread(tuning, pad, _NOISE_TEXTS, tokens=_NOISE_TOKENS)
        ),
    }


def _rows(feed: dict[str, np.ndarray]) -> int:
    return len(feed["input_ids"])


def fidelity(fp32: np.ndarray, int8: np.ndarray, context: Context) -> dict[str, Any]:
    """On the tuning split: decisions that flip, mean |Δlogit|, and both scores in points."""
    data = context.task.data
    scores = [headline(score(data.spec, data.labels, logits, data.tuning.labels)) for logits in (fp32, int8)]
    flips = None if data.spec.kind == "regression" else len(flipped(fp32, int8))
    return {
        "examples": len(fp32),
        "flips": flips,
        "mean_abs_logit_change": logit_difference(fp32, int8)[0],
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


def _trained(name: str, module: str = "training_stages") -> Stage:
    """The stages that train are in modules that need torch, imported when one of them runs."""

    def make(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
        stages = import_module(f".{module}", __package__)
        return getattr(stages, name)(plan, node, inputs, context, out, work)

    return make


STAGES: dict[str, Stage] = {
    "pretrain": _trained("pretrain"),
    "grow": _trained("grow_teacher", "starting"),
    "finetune": _trained("finetune"),
    "adopt": adopt,
    "tokenize": tokenize,
    "masked_lm": _trained("masked_lm"),
    "general": _trained("general"),
    "augment": augment,
    "distill": _trained("distill"),
    "quantize_aware": _trained("quantize_aware", "aware_training"),
    "export": export,
    "quantize": quantize,
}
