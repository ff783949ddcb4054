"""The stages that train: teacher, masked-LM head, the student's encoder on plain text, the student on the task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .. import processes
from ..corpus import (
    MaskedBatches,
    PairBatches,
    TextBatches,
    TokenShards,
    continuing,
    sentence_ends,
)
from ..errors import CompressError
from ..models.checkpoints import (
    load_classifier,
    load_encoder,
    load_tokenizer,
    pad_id,
    save_checkpoint,
)
from ..models.dimensions import usable_positions
from ..models.layer_maps import matched_layers
from ..models.masked_head import MaskedLmObjective
from ..models.masked_lm import copy_head, has_masked_lm_head, load_masked_lm, masked_lm_around, new_masked_lm_head
from ..models.random_models import random_classifier, random_encoder
from ..objective import Objective
from ..spec.losses import OF_PAIRS, OF_TOKENS, HardLabel, MaskedTokens
from ..spec.stages import Losses, QuantizeAware, Training
from ..store import Artifact
from ..tasks import TaskBatches
from ..training import Batches, Outcome, make_accelerator, train
from .arithmetic import speed
from .augmenting import training_examples
from .context import Context
from .draft import PRETRAINED, Node
from .plan import Plan
from .starting import begin_with_counts, grow_into, start_encoder, start_student, untuned
from .teaching import answers_once, held_out_loss, set_dropout, teacher_features, tuning_score
from .trainlog import STATE, TrainLog, saved_step

Inputs = dict[str, Artifact]
_TEXT_LENGTH = 128  # tokens of a sequence of plain text, unless the recipe says otherwise


def pretrain(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The teacher, from random weights or its checkpoint, trained on plain text -> checkpoint, with a masked-LM head where
    that is among the losses."""
    torch.manual_seed(node.seed)
    hides = _hides(node)
    model = _before_text(plan, node, masked=hides)
    text, held = _text(plan, node, inputs)
    counted = begin_with_counts(plan, node, model, text, context, work)
    encoder = getattr(model, "base_model", model)
    masked = MaskedLmObjective(model) if hides else None
    width = encoder.config.hidden_size
    objective = Objective(_losses(node), widths=(width, width), masked_lm=masked)
    run = TrainingRun(node, inputs, context, out, work, encoder, objective)
    info = run.train(text if masked is None else _hidden(plan, node, text), None, None)
    if held is not None:
        size = node.spec.micro_batch_size or node.spec.batch_size
        found = held_out_loss(model.eval(), _hidden(plan, node, held), size=size)
        info |= {"held_out": found}
        context.notice(
            f"{node.id}: perplexity {found['perplexity']:.1f} of the hidden tokens of {found['sequences']:,} sequences that "
            f"were not trained on, after {info['steps']:,} steps"
        )
    save_checkpoint(model.eval(), plan.teacher.tokenizer, out)
    return {**info, **counted, "sequence_length": text.length, "sequences": text.count}


def _before_text(plan: Plan, node: Node, *, masked: bool) -> Any:
    """What `pretrain` starts from: a masked language model, its own or a new one's head, or an encoder alone."""
    folder = plan.teacher.folder
    if folder is None:
        encoder = random_encoder(plan.teacher.config)
        model = masked_lm_around(encoder) if masked else encoder
        grow_into(model, plan.teacher, seed=node.seed)
        return model
    if not masked:
        return load_encoder(folder)
    head = load_masked_lm(folder) if has_masked_lm_head(folder) else new_masked_lm_head(folder)
    return masked_lm_around(load_encoder(folder), head)  # whose own has no pooler, which losses of pairs read


def finetune(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The teacher, trained on the task's labels -> checkpoint."""
    source = plan.teacher
    torch.manual_seed(node.seed)
    if source.folder is not None or PRETRAINED in inputs:
        model = load_classifier(untuned(plan, inputs), labels=context.labels, trained=False)
    else:
        model = random_classifier(source.config, labels=context.labels)
        grow_into(model, source, seed=node.seed)
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
    text, _ = _text(plan, node, inputs)
    torch.manual_seed(node.seed)  # for a pooler that the checkpoint lacks
    folder = inputs["masked_lm"].path if "masked_lm" in inputs else untuned(plan, inputs)
    teacher = load_encoder(folder)
    torch.manual_seed(node.seed)
    student, start = start_encoder(plan, teacher, text)
    masked = _heads(plan, node, student, teacher, folder)
    run = TrainingRun(node, inputs, context, out, work, student, _objective(plan, node.spec, masked))
    info = run.train(text if masked is None else _hidden(plan, node, text), teacher, None)
    save_checkpoint(student.eval(), plan.teacher.tokenizer, out)
    trained = {"pooler_trained": True} if "pooled" in run.objective.student_features else {}
    return {**info, **start, **trained, "sequence_length": text.length}


def _heads(plan: Plan, node: Node, student: Any, teacher: Any, folder: Path) -> MaskedLmObjective | None:
    """The student's masked-LM head, and its teacher's where that is asked: then a copied student begins with the same."""
    names = {loss.name for loss in _losses(node)}
    if not names & set(OF_TOKENS):
        return None
    own = masked_lm_around(student)
    if "masked_soft_target" not in names:
        return MaskedLmObjective(own)
    theirs = masked_lm_around(teacher, load_masked_lm(folder))
    if plan.student is not None and plan.student.init == "copy":
        copy_head(theirs, own)
    return MaskedLmObjective(own, theirs)


def masked_lm(plan: Plan, node: Node, inputs: Inputs, context: Context, out: Path, work: Path) -> dict[str, Any]:
    """The teacher under a masked-LM head, trained on plain text -> checkpoint. The table of words stays as it is."""
    torch.manual_seed(node.seed)
    model: Any = new_masked_lm_head(untuned(plan, inputs))
    model.get_input_embeddings().requires_grad_(False)
    set_dropout(model, 0.0)
    objective = MaskedLmObjective(model)
    run = TrainingRun(node, inputs, context, out, work, model.base_model, objective)
    text, _ = _text(plan, node, inputs)
    info = run.train(_hidden(plan, node, text), None, None)
    save_checkpoint(model.eval(), plan.teacher.tokenizer, out)
    return info


def _length(plan: Plan, node: Node) -> int:
    return node.spec.max_length or min(_TEXT_LENGTH, usable_positions(plan.teacher.config))


def check_text(plan: Plan, node: Node, text: Artifact) -> None:
    """Raise `CompressError` where `text`, tokenized, is too short for the stage."""
    _text(plan, node, {"text": text})


def _text(plan: Plan, node: Node, inputs: Inputs) -> tuple[TextBatches, TextBatches | None]:
    """What is trained on, and the share of it that is held out, where the stage has a perplexity to tell. Raises
    `CompressError` where the text is too short."""
    held_out = getattr(node.spec, "held_out", 0.0) if _hides(node) else 0.0
    try:
        return _sequences(plan, node, inputs).held_out(held_out)
    except CompressError as error:
        text = ", ".join(plan.corpus.words) if plan.corpus else "none"
        raise CompressError(f"recipe {plan.recipe.name}, stage {node.stage}: {error}; the text is {text}") from None


def _sequences(plan: Plan, node: Node, inputs: Inputs) -> TextBatches:
    """Full sequences, or pairs of segments where a loss of the stage is about those."""
    shards = TokenShards.open(inputs["text"].path)
    how: Any = {"length": _length(plan, node), "batch_size": node.spec.batch_size, "seed": node.seed}
    labels: Any = next((loss.name for loss in _losses(node) if loss.name in OF_PAIRS), None)
    if labels is None:
        return TextBatches(shards, **how, apart=node.spec.attention == "document")
    return PairBatches(shards, **how, ends=sentence_ends(plan.teacher.tokenizer), labels=labels)


def _hidden(plan: Plan, node: Node, text: TextBatches) -> MaskedBatches:
    """`text` with hidden tokens, as the stage's loss of them says."""
    loss = next((loss for loss in _losses(node) if isinstance(loss, MaskedTokens)), MaskedTokens())
    return MaskedBatches(
        text, masks=loss.masks, continues=continuing(plan.teacher.tokenizer) if loss.whole_words else None
    )


def _hides(node: Node) -> bool:
    """Whether the stage's model learns the hidden tokens of the text."""
    return any(isinstance(loss, MaskedTokens) for loss in _losses(node))


def _losses(node: Node) -> list[Any]:
    return [loss for loss in getattr(node.spec, "losses", ()) if loss.weight > 0]


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
        return {**info, "examples": len(examples)}

    def train(self, data: Batches, teacher: Any, evaluate: Any) -> dict[str, Any]:
        """Train the model in place and keep the log; what there is to say of it. Processes that only help end here."""
        accelerator = make_accelerator(self.context.precision)
        split = self._splits()
        if processes.is_first() and (step := saved_step(self.work)):
            self.context.listener.notice(f"{self.node.id}: goes on after step {step}")
        with TrainLog(self.work / "log.jsonl", self.context.listener) as log:
            outcome = train(
                self.model,
                self.objective,
                data,
                self.settings,
                accelerator=accelerator,
                teacher=teacher_features(teacher, self.objective, data, self.settings, self.work, accelerator),
                evaluate=evaluate,
                work=self.work / STATE,
                on_step=log.write,
                on_notice=self.context.notice,
                checkpoint_seconds=self.context.checkpoint_seconds,
                split=split,
            )
        if self.context.together is not None:
            self.context.together.trained()
        log.copy_to(self.out / "log.jsonl")
        beside = None if answers_once(self.objective, data, self.settings) else teacher
        return {
            **self._told(outcome),
            **speed(self.model, beside, self.objective, log.totals(), accelerator),
            "device": accelerator.device.type,
            **({"fsdp": True} if split else {}),
        }

    def _splits(self) -> bool:
        """Whether processes hold parts of the model: they cannot where weights are read beside its forward."""
        if not self.context.fsdp:
            return False
        spread = any(name.startswith("spread[") for name in self.objective.student_features)
        if spread or isinstance(self.settings, QuantizeAware):
            why = "block_spread reads the weights themselves" if spread else "its roundings stand inside the model"
            self.context.notice(f"{self.node.id}: every process holds the whole model, --fsdp or not: {why}")
            return False
        return True

    def _told(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "steps": outcome.steps,
            "best_step": outcome.best_step,
            "tuning_score": outcome.best_score,
            "tuning_history": outcome.history,
            "precision": self.context.precision,
            "threads": self.context.threads,
            **({"processes": processes.count()} if processes.count() > 1 else {}),
        }
