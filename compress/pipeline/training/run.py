"""The training of a stage: what it trains, with which settings, and the info that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from ...augment import read_augmented
from ...errors import CheckFailed, CompressError
from ...losses.features import LOGITS
from ...models.checkpoints.folders import pad_id, save_checkpoint
from ...models.layer_maps import matched_layers
from ...models.masked_head import MaskedLmHeads
from ...models.sentence_encoders.layer_mix import learnt_mix
from ...objective import Objective
from ...processes import ranks
from ...provenance import running_code
from ...spec.stages import Losses, Training
from ...store import Artifact
from ...tasks import TASK_KINDS, Encoded, EncodedSpans, TaskBatches, encode
from ...training import Batches, Outcome, make_accelerator, train
from ..plan import Job, Plan
from ..plan.sources import TaskSource
from .held_out import tuning_score
from .info import Speed, TrainingInfo
from .log import STATE, TrainLog, saved_step
from .teacher_targets import answers_once, from_table, set_dropout, teacher_features
from .thresholds import choose_threshold
from .throughput import speed


def student_objective(plan: Plan, spec: Losses, masked_lm: MaskedLmHeads | None = None) -> Objective:
    """Return the objective by which a student learns from the teacher with the losses of `spec`."""
    student, teacher = plan.sizes["student"], plan.sizes["teacher"]
    pairs = matched_layers(spec, student_layers=student.layers, teacher_layers=teacher.layers)
    widths = student.hidden, teacher.hidden
    return Objective(spec.losses, layers=pairs, widths=widths, masked_lm=masked_lm, kind=plan.task.spec.kind)


class TrainingRun:
    """One training stage.

    `unsharded_because`: why every process must hold the whole model, even with --fsdp; None if it may be sharded. `answers`: the targets
    from several teachers, [training example, output], or for questions [token, 2], in place of a teacher's outputs during training.
    """

    def __init__(
        self,
        job: Job[Training],
        model: Any,
        objective: Objective,
        *,
        unsharded_because: str | None = None,
        answers: np.ndarray | None = None,
    ) -> None:
        self.job, self.context, self.settings = job, job.context, job.spec
        self.model, self.objective, self._unsharded_because, self._answers = (
            model,
            objective,
            unsharded_because,
            answers,
        )
        set_dropout(model, self.settings.dropout)

    def on_task(self, tokenizer: Any, teacher: Any, teacher_tokenizer: Any = None) -> TrainingInfo:
        """Train on the task's examples, score on its tuning split if the head is trained, and save. `tokenizer` is the model's;
        `teacher_tokenizer` its teacher's, if that is another."""
        info = self.learn_task(tokenizer, teacher, teacher_tokenizer)
        if LOGITS in self.objective.student_features:
            info = self.with_threshold(tokenizer, info)
        save_checkpoint(self.model.eval(), tokenizer, self.job.out)
        return info

    def learn_task(self, tokenizer: Any, teacher: Any, teacher_tokenizer: Any = None) -> TrainingInfo:
        """As `on_task`, but only trains the model in place."""
        task, pad = self.context.task, pad_id(self.model.config.to_dict())
        length = self.settings.max_length or task.spec.max_length
        data = self._examples(tokenizer, length, pad)
        if teacher_tokenizer is not None or self._answers is not None:
            data.encoded = data.encoded.compared_by_answers()
        reads = None
        if teacher_tokenizer is not None:
            reads = self._read_by(teacher, teacher_tokenizer, data.encoded, length)
        scored = LOGITS in self.objective.student_features
        tuning = task.encoded("tuning", tokenizer, task.spec.max_length)  # as the model is scored and shipped
        if scored and TASK_KINDS[task.spec.kind].scoring.by_correlation and len(task.data.tuning) == 1:
            scored = False
            self.context.notice(
                f"{self.job.node.id}: one tuning example has no correlation to choose by; the last step is kept"
            )
        evaluate = tuning_score(task.data, tuning, pad) if scored else None
        info = self.train(data, teacher, evaluate, reads=reads)
        info["examples"] = len(data.encoded)
        if (mix := learnt_mix(self.model)) is not None:
            info["layer_mix"] = mix
        return info

    def with_threshold(self, tokenizer: Any, info: TrainingInfo) -> TrainingInfo:
        """Return `info` with the threshold that `choose_threshold` chose for the trained model."""
        chosen = choose_threshold(self.model, tokenizer, self.context, stage=self.job.node.id)
        return {**info, **chosen}

    def _examples(self, tokenizer: Any, length: int, pad: int) -> TaskBatches:
        encoded = training_examples(self.context.task, tokenizer, length, self.job.inputs.get("augmented"))
        return TaskBatches(encoded, batch_size=self.settings.batch_size, pad_id=pad, seed=self.job.node.seed)

    def _read_by(self, teacher: Any, tokenizer: Any, examples: Encoded, length: int) -> TaskBatches:
        """Return the examples in a teacher's own tokens; for a window of a question, the text that the student reads, in as many tokens as
        needed."""
        config = teacher.config.to_dict()
        if not isinstance(examples, EncodedSpans):
            return self._examples(tokenizer, length, pad_id(config))
        parts = self.job.plan.teacher.parts_of(examples, length)
        return TaskBatches(parts, batch_size=self.settings.batch_size, pad_id=pad_id(config), seed=self.job.node.seed)

    def train(
        self,
        data: Batches,
        teacher: Any,
        evaluate: Callable[[nn.Module], float] | None,
        *,
        reads: TaskBatches | None = None,
    ) -> TrainingInfo:
        """Train the model in place and write the log. Processes that only help to train end here. `reads`: `data` in the teacher's
        tokens."""
        accelerator, objective, settings = make_accelerator(self.context.precision), self.objective, self.settings
        sharded = self._shards_model()
        work = self.job.work

        def targets() -> Any:
            if self._answers is not None and isinstance(data, TaskBatches):
                return from_table(data.encoded.by_row(self._answers), data.encoded, accelerator)
            on_progress = partial(self.context.listener.progress, "answered by the teacher")
            return teacher_features(
                teacher, objective, data, settings, work, accelerator, reads=reads, on_progress=on_progress
            )

        if ranks.is_first() and (step := saved_step(work)):
            self.context.listener.notice(f"{self.job.node.id}: continues after step {step}")
        with _naming(self.job), TrainLog(work / "log.jsonl", self.context.listener) as log:
            outcome = train(
                self.model,
                objective,
                data,
                settings,
                accelerator=accelerator,
                teacher=targets(),
                evaluate=evaluate,
                work=work / STATE,
                on_step=log.write,
                on_notice=self.context.notice,
                checkpoint_seconds=self.context.checkpoint_seconds,
                sharded=sharded,
                conditions=(conditions := self._conditions(accelerator.device.type)),
            )
        if self.context.peers is not None:
            self.context.peers.end_training()
        log.copy_to(self.job.out / "log.jsonl")
        from_tables = self._answers is not None or answers_once(objective, data, settings)
        beside = None if from_tables else teacher
        reached = speed(self.model, beside, objective, log.totals(), accelerator)
        info = self._info(outcome, reached, accelerator.device.type, sharded)
        if earlier := [each for each in outcome.conditions if each != conditions]:
            info["earlier_parts"] = earlier
        return info

    def _conditions(self, device: str) -> dict[str, Any]:
        """Return the machine settings that the steps depend on, which may differ when an interrupted training resumes."""
        code = running_code().model_dump(mode="json")
        return {"threads": self.context.threads, "processes": ranks.count(), "device": device, "code": code}

    def _shards_model(self) -> bool:
        """Whether each process holds only a shard of the model."""
        if not self.context.fsdp or self._unsharded_because is None:
            return self.context.fsdp
        self.context.notice(
            f"{self.job.node.id}: every process holds the whole model despite --fsdp: {self._unsharded_because}"
        )
        return False

    def _info(self, outcome: Outcome, reached: Speed, device: str, sharded: bool) -> TrainingInfo:
        info: TrainingInfo = {
            "steps": outcome.steps,
            "best_step": outcome.best_step,
            "tuning_score": outcome.best_score,
            "tuning_history": outcome.history,
            "precision": self.context.precision,
            "threads": self.context.threads,
            **reached,
            "device": device,
        }
        if ranks.count() > 1:
            info["processes"] = ranks.count()
        if sharded:
            info["fsdp"] = True
        return info


@contextmanager
def _naming(job: Job[Any]) -> Iterator[None]:
    """Make errors name the stage whose settings they are about; one on a lost process passes unchanged."""
    try:
        yield
    except CompressError as error:
        if type(error) not in (CompressError, CheckFailed):
            raise
        raise type(error)(f"recipe {job.plan.recipe.name}, stage {job.node.stage}: {error}") from error


def training_examples(task: TaskSource, tokenizer: Any, length: int, augmented: Artifact | None) -> Encoded:
    """Return the training split in tokens, followed by its copies if an augment stage made some."""
    if augmented is None:
        return task.encoded("train", tokenizer, length)
    train, copies = task.data.train, read_augmented(augmented.path)
    texts = tuple([*own, *new] for own, new in zip(train.texts, copies.texts, strict=True))
    return encode(tokenizer, replace(train, texts=texts, labels=np.concatenate([train.labels, copies.labels])), length)
