"""The stages that train: teacher, masked-LM head, the student's encoder on plain text, the student on the task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..corpus import MaskedBatches, PairBatches, TextBatches, TokenShards, sentence_ends
from ..models.checkpoints import load_classifier, load_encoder, load_tokenizer, pad_id, random_bert, save_checkpoint
from ..models.dimensions import usable_positions
from ..models.layer_maps import matched_layers
from ..models.masked_head import MaskedLmObjective
from ..models.masked_lm import masked_lm_around, new_masked_lm_head
from ..objective import Objective
from ..spec.losses import HardLabel
from ..spec.stages import Losses, Training
from ..store import Artifact
from ..tasks import TaskBatches
from ..training import Batches, Outcome, make_accelerator, train
from .adoption import majority_score
from .augmenting import training_examples
from .context import Context
from .draft import Node
from .plan import Plan
from .starting import start_encoder, start_student
from .teaching import set_dropout, teacher_features, tuning_score
from .trainlog import TrainLog

Inputs = dict[str, Artifact]
_TEXT_LENGTH = 128  # tokens of a sequence of plain text, unless the recipe says otherwise


def finetune(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The teacher, trained on the task's labels -> checkpoint."""
    source = plan.teacher
    torch.manual_seed(node.seed)
    if source.folder is not None:
        model = load_classifier(source.folder, labels=context.labels, trained=False)
    else:
        model = random_bert(source.config, labels=context.labels)
    run = TrainingRun(node, inputs, context, out, work, model, Objective((HardLabel(),)))
    return run.on_task(source.tokenizer, None)


def distill(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The student, from its last checkpoint or started from the teacher, trained against it -> checkpoint."""
    teacher = load_classifier(inputs["teacher"].path, labels=context.labels, trained=True)
    tokenizer = load_tokenizer(inputs["teacher"].path)
    torch.manual_seed(node.seed)
    student, start = start_student(plan, node.spec, inputs, context, teacher, tokenizer)
    run = TrainingRun(node, inputs, context, out, work, student, _objective(plan, node.spec))
    return run.on_task(tokenizer, teacher) | start


def general(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The student's encoder, trained on plain text against the teacher's or on the text's labels -> checkpoint without a head."""
    names = {loss.name for loss in node.spec.losses if loss.weight > 0}
    text = _pairs(plan, node, inputs) if "sentence_order" in names else _text(plan, node, inputs)
    torch.manual_seed(node.seed)  # for a pooler that the checkpoint lacks
    teacher = load_encoder(_folder(plan))
    torch.manual_seed(node.seed)
    student, start = start_encoder(plan, teacher, text)
    masked = MaskedLmObjective(masked_lm_around(student)) if "masked_lm" in names else None
    run = TrainingRun(node, inputs, context, out, work, student, _objective(plan, node.spec, masked))
    info = run.train(text if masked is None else MaskedBatches(text), teacher, None)
    save_checkpoint(student.eval(), plan.teacher.tokenizer, out)
    trained = {"pooler_trained": True} if "pooled" in run.objective.student_features else {}
    return {**info, **start, **trained, "sequence_length": text.length}


def masked_lm(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The teacher under a masked-LM head, trained on plain text -> checkpoint. The table of words stays as it is."""
    torch.manual_seed(node.seed)
    model: Any = new_masked_lm_head(_folder(plan))
    model.get_input_embeddings().requires_grad_(False)
    set_dropout(model, 0.0)
    objective = MaskedLmObjective(model)
    run = TrainingRun(node, inputs, context, out, work, model.base_model, objective)
    info = run.train(MaskedBatches(_text(plan, node, inputs)), None, None)
    save_checkpoint(model.eval(), plan.teacher.tokenizer, out)
    return info


def _folder(plan: Plan) -> Path:
    if plan.teacher.folder is None:
        raise RuntimeError("a stage on plain text is only planned with a teacher that has a checkpoint")
    return plan.teacher.folder


def _length(plan: Plan, node: Node) -> int:
    return node.spec.max_length or min(_TEXT_LENGTH, usable_positions(plan.teacher.config))


def _text(plan: Plan, node: Node, inputs: Inputs) -> TextBatches:
    shards = TokenShards.open(inputs["text"].path)
    return TextBatches(shards, length=_length(plan, node), batch_size=node.spec.batch_size, seed=node.seed)


def _pairs(plan: Plan, node: Node, inputs: Inputs) -> PairBatches:
    return PairBatches(
        TokenShards.open(inputs["text"].path),
        length=_length(plan, node),
        batch_size=node.spec.batch_size,
        seed=node.seed,
        ends=sentence_ends(plan.teacher.tokenizer),
    )


def _objective(plan: Plan, spec: Losses, masked_lm: MaskedLmObjective | None = None) -> Objective:
    student, teacher = plan.sizes["student"], plan.sizes["teacher"]
    pairs = matched_layers(spec, student_layers=student.layers, teacher_layers=teacher.layers)
    return Objective(spec.losses, layers=pairs, widths=(student.hidden, teacher.hidden), masked_lm=masked_lm)


class TrainingRun:
    """One training stage: what it trains, and on what terms."""

    def __init__(
        self, node: Node, inputs: Inputs, context: Context, out: Path, work: Path, model: Any, objective: Any
    ) -> None:
        self.node, self.inputs, self.context, self.out, self.work = node, inputs, context, out, work
        self.model, self.objective = model, objective
        self.settings: Training = node.spec
        set_dropout(model, self.settings.dropout)

    def on_task(self, tokenizer: Any, teacher: Any) -> dict[str, Any]:
        """Train on the task's examples, score on its tuning split where the head is trained, save."""
        info = self.learn_task(tokenizer, teacher)
        save_checkpoint(self.model.eval(), tokenizer, self.out)
        return info

    def learn_task(self, tokenizer: Any, teacher: Any) -> dict[str, Any]:
        """As `on_task`, but the model, in place, is all that it leaves."""
        task, pad = self.context.task, pad_id(self.model.config.to_dict())
        length = self.settings.max_length or task.spec.max_length
        examples = training_examples(task, tokenizer, length, self.inputs.get("augmented"))
        data = TaskBatches(examples, batch_size=self.settings.batch_size, pad_id=pad, seed=self.node.seed)
        scored = "logits" in self.objective.student_features
        tuning = task.encoded("tuning", tokenizer, length)
        info = self.train(data, teacher, tuning_score(task.data, tuning, pad) if scored else None)
        self._compare(info["tuning_score"])
        return {**info, "examples": len(examples)}

    def train(self, data: Batches, teacher: Any, evaluate: Any) -> dict[str, Any]:
        """Train the model in place and keep the log; what there is to say of it."""
        accelerator = make_accelerator(self.context.precision)
        with TrainLog(self.work / "log.jsonl", self.context.listener) as log:
            outcome = train(
                self.model,
                self.objective,
                data,
                self.settings,
                accelerator=accelerator,
                teacher=teacher_features(teacher, self.objective, data, self.settings, self.work, accelerator),
                evaluate=evaluate,
                work=self.work / "state",
                on_step=log.write,
                checkpoint_seconds=self.context.checkpoint_seconds,
            )
        log.copy_to(self.out / "log.jsonl")
        return self._told(outcome, log) | {"device": accelerator.device.type}

    def _told(self, outcome: Outcome, log: TrainLog) -> dict[str, Any]:
        return {
            "steps": outcome.steps,
            "best_step": outcome.best_step,
            "tuning_score": outcome.best_score,
            "tuning_history": outcome.history,
            "tokens_per_second": log.tokens_per_second,
            "precision": self.context.precision,
            "threads": self.context.threads,
        }

    def _compare(self, score: float | None) -> None:
        guess = majority_score(self.context.task.data)
        if score is not None and score <= guess:
            self.context.notice(
                f"{self.node.id} scores {score:.1f} on the tuning split, no better than a constant answer ({guess:.1f}): "
                "it has learnt nothing; train longer, or look at the data"
            )
