"""Stages: plain functions from a node and its input artefacts to a directory. Heavy imports are inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..models.checkpoints import load_classifier, load_tokenizer, pad_id, random_bert, save_checkpoint
from ..models.dimensions import read_config
from ..spec.losses import HardLabel
from ..store import Artifact
from ..tasks import headline, score, wordpiece
from .context import Context
from .plan import Node, Plan

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Inputs = dict[str, Artifact]
Stage = Callable[[Plan, Node, Inputs, Context, Path, Path], dict[str, Any]]


def finetune(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The teacher, trained on the task's labels -> checkpoint."""
    import torch

    source = plan.teacher
    torch.manual_seed(plan.seed)
    if source.folder is not None:
        tokenizer = load_tokenizer(source.folder)
        model = load_classifier(source.folder, labels=context.labels, trained=False)
    else:
        tokenizer = wordpiece(plan.sizes["teacher"].vocabulary)
        model = random_bert(source.config, labels=context.labels)
    _set_dropout(model, node.spec.dropout)
    return _train(model, (HardLabel(),), tokenizer, node, context, out, work, teacher=None)


def distill(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The student, started from the teacher and trained against it -> checkpoint."""
    import torch

    from ..models.students import build_student

    folder = inputs["teacher"].path
    teacher = load_classifier(folder, labels=context.labels, trained=True)
    torch.manual_seed(plan.seed)
    if plan.student is None:
        raise RuntimeError("a distill stage is only planned with a student")
    student = build_student(plan.student, teacher, plan.sizes["student"])
    _set_dropout(student, node.spec.dropout)
    return _train(student, node.spec.losses, load_tokenizer(folder), node, context, out, work, teacher=teacher)


def _train(
    model: Any, losses: Any, tokenizer: Tokenizer, node: Node, context: Context, out: Path, work: Path, *, teacher: Any
) -> dict[str, Any]:
    from ..objective import Objective
    from ..training import TrainingData, make_accelerator, train
    from .adoption import majority_score
    from .teaching import teacher_features, tuning_score
    from .trainlog import TrainLog

    settings, task = node.spec, context.task
    pad = pad_id(model.config.to_dict())
    data = TrainingData(task.encoded("train", tokenizer, settings.max_length), pad, context.seed)
    tuning = task.encoded("tuning", tokenizer, settings.max_length)
    objective = Objective(losses)
    accelerator = make_accelerator(context.precision)
    with TrainLog(work / "log.jsonl", context.listener) as log:
        outcome = train(
            model,
            objective,
            data,
            settings,
            accelerator=accelerator,
            teacher=teacher_features(teacher, objective, data, work, accelerator),
            evaluate=tuning_score(task.data, tuning, pad),
            work=work / "state",
            on_step=log.write,
            checkpoint_seconds=context.checkpoint_seconds,
        )
    guess = majority_score(task.data)
    if outcome.best_score is not None and outcome.best_score <= guess:
        context.notice(
            f"{node.model} scores {outcome.best_score:.1f} on the tuning split, no better than a constant answer ({guess:.1f}): "
            "it has learnt nothing; train longer, or look at the data"
        )
    save_checkpoint(accelerator.unwrap_model(model).eval(), tokenizer, out)
    log.copy_to(out / "log.jsonl")
    return {
        "steps": outcome.steps,
        "best_step": outcome.best_step,
        "tuning_score": outcome.best_score,
        "tuning_history": outcome.history,
        "tokens_per_second": log.tokens_per_second,
        "precision": context.precision,
        "threads": context.threads,
        "device": accelerator.device.type,
    }


def _set_dropout(model: Any, rate: float | None) -> None:
    """Set every dropout of the model; its config says so too."""
    from torch import nn

    if rate is None:
        return
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        for name in ("dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, rate)
    names = (
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "dropout",
        "attention_dropout",
        "seq_classif_dropout",
    )
    for name in names:
        if hasattr(model.config, name):
            setattr(model.config, name, rate)


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
        checkpoint.path, out, opset=node.spec.opset, task_name=spec.name, labels=context.labels, kind=spec.kind
    )


def quantize(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """fp32 ONNX -> `model_quantized.onnx`, with how far its logits are from fp32 on the tuning split."""
    from ..evaluate import predict_onnx
    from ..quantize import quantize_onnx

    checkpoint, source = inputs.values()
    info = quantize_onnx(source.path / "model.onnx", out, node.spec)
    tokenizer, config = load_tokenizer(checkpoint.path), read_config(checkpoint.path)
    tuning = context.task.encoded("tuning", tokenizer, context.task.spec.max_length)
    fp32, int8 = (
        predict_onnx(path, tuning, pad_id(config), threads=context.threads)
        for path in (source.path / "model.onnx", out / "model_quantized.onnx")
    )
    return {**info, "fidelity": _fidelity(fp32, int8, context)}


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


STAGES: dict[str, Stage] = {
    "finetune": finetune,
    "adopt": adopt,
    "distill": distill,
    "export": export,
    "quantize": quantize,
}
