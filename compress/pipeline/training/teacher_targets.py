"""What the training loop asks of a teacher and of the tuning split."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn

from ...atomic import replacing
from ...corpus import MaskedBatches
from ...errors import CompressError
from ...losses.features import LOGITS
from ...losses.spans import moved_logits
from ...models.features import Batch, Features, compute_features
from ...models.masked_lm import masked_text_loss
from ...models.predict import collected_logits, predict_logits, put_token_logits, to_tensors
from ...objective import Objective
from ...processes import ranks
from ...spec.stages import Training
from ...tasks import (
    TASK_KINDS,
    Encoded,
    EncodedParts,
    EncodedSpans,
    EncodedWords,
    TaskBatches,
    TrainingData,
    collate,
    headline,
    headline_of,
    score,
    sorted_chunks,
    span_tables,
)
from ...training import Batches
from ..plan.sources import TaskSource
from .info import HeldOut


def tuning_score(data: TrainingData, tuning: Encoded, pad: int) -> Callable[[nn.Module], float]:
    """A function that scores a model on the tuning split, in headline points; where answers go by a threshold, at the best one."""

    def evaluate(model: nn.Module) -> float:
        return headline(score(data.spec, data.labels, tuning_outputs(data, tuning, pad, model), tuning.labels))

    return evaluate


def tuning_outputs(data: TrainingData, tuning: Encoded, pad: int, model: nn.Module) -> np.ndarray:
    """Of the tuning split, in its order, as scores take them; where answers go by a threshold, decided at the best one."""
    logits = collected_logits(model, tuning, pad)
    return tuning.decided(logits, best_threshold(data, logits, tuning.labels))


def best_threshold(data: TrainingData, logits: np.ndarray, gold: np.ndarray) -> float | np.ndarray:
    """At what collected outputs are best decided on the tuning split: the logits, [label], or by how much no answer beats a span; 0 where
    answers go by none."""
    threshold = TASK_KINDS[data.spec.kind].threshold
    return 0.0 if threshold is None else threshold(logits, gold, headline_of(data.spec, data.labels))


def held_out_loss(model: nn.Module, data: MaskedBatches, *, size: int) -> HeldOut:
    """Of text that was not trained on: `loss`, in nats a masked token, and `perplexity`; `sequences` and `tokens` counted.

    `size`: sequences of a forward, halved where memory runs out. Raises `CompressError` where there is none for one.
    """
    summed, tokens, start = 0.0, 0, 0
    while start < data.text.count:
        part = np.arange(start, min(start + size, data.text.count))
        try:
            loss, masked = _loss_of(model, data, part)
        except torch.OutOfMemoryError:
            if size == 1:
                raise CompressError(
                    "out of memory with one held-out sequence at a time; train where there is more"
                ) from None
            size //= 2
            continue
        summed, tokens, start = summed + loss * masked, tokens + masked, start + len(part)
    loss = summed / max(1, tokens)
    return {"loss": loss, "perplexity": math.exp(loss), "sequences": data.text.count, "tokens": tokens}


@torch.inference_mode()
def _loss_of(model: nn.Module, data: MaskedBatches, sequences: np.ndarray) -> tuple[float, int]:
    """(mean of the masked tokens, how many)."""
    batch = to_tensors(data.collate(sequences), next(model.parameters()).device)
    return float(masked_text_loss(model, batch)), len(batch["masked"])


def teacher_features(
    teacher: Any,
    objective: Objective,
    data: Batches,
    settings: Training,
    work: Path,
    accelerator: Accelerator,
    *,
    reads: TaskBatches | None = None,
    on_progress: Callable[[int, int], None],
) -> Callable[[Batch, np.ndarray], Features]:
    """The teacher's features for a batch: none, its logits from a table made once, or a forward per batch.

    `reads`: the same examples in the teacher's tokens, where those are not the student's. Where words are labelled, these are other
    windows, and the teacher's answers come from a table of all words; where questions are answered, they are the student's windows, and
    the teacher's answers are moved to its tokens. `on_progress`: of a table, called with how many
    examples stand in it, and how many there are."""
    wanted = objective.teacher_features
    if teacher is None or not wanted:
        return lambda batch, indices: {}
    teacher = teacher.eval().requires_grad_(False).to(accelerator.device)
    if objective.masked_lm is not None:
        objective.masked_lm.teacher_to(accelerator.device)
    if isinstance(data, TaskBatches) and answers_once(objective, data, settings):
        with ranks.first_goes_first():
            table = _logits_table(teacher, data, reads, work, on_progress)
        return from_table(table, data.encoded, accelerator)

    def forward(batch: Batch, indices: np.ndarray) -> Features:
        own = batch if reads is None else to_tensors(reads.collate(indices), accelerator.device)
        with torch.no_grad():
            features = compute_features(teacher, own, wanted)
            if "places" in own:
                features[LOGITS] = moved_logits(features[LOGITS], own["places"], batch["input_ids"].shape[1])
        return features

    return forward


def from_table(
    logits: np.ndarray, encoded: Encoded, accelerator: Accelerator
) -> Callable[[Batch, np.ndarray], Features]:
    """A function that gives the logits of a batch of `encoded`, the training examples, out of those of all: float32 [example, output]; of
    all words, [word, label], at the tokens that stand for them (elsewhere some word's, which nothing compares); or of all windows of
    questions, [token, 2] (`span_tables`), which stay where they are, on the disk."""
    if isinstance(encoded, EncodedSpans):
        return _from_windows(logits, encoded, accelerator)
    table = torch.tensor(logits, device=accelerator.device)

    def look_up(batch: Batch, indices: np.ndarray) -> Features:
        if "words" in batch:
            return {LOGITS: table[batch["words"].clamp(min=0)]}
        return {LOGITS: table[to_tensors({"ids": indices}, accelerator.device)["ids"]]}

    return look_up


def _from_windows(
    table: np.ndarray, windows: EncodedSpans, accelerator: Accelerator
) -> Callable[[Batch, np.ndarray], Features]:
    if len(table) != windows.starts[-1]:
        raise RuntimeError(f"a table of {len(table):,} tokens is not of windows that have {windows.starts[-1]:,}")

    def look_up(batch: Batch, indices: np.ndarray) -> Features:
        found = span_tables.padded(table, windows, indices, batch["input_ids"].shape[1])
        return {LOGITS: to_tensors({LOGITS: found}, accelerator.device)[LOGITS]}

    return look_up


def answers_once(objective: Objective, data: Batches, settings: Training) -> bool:
    """Whether a table of the teacher's logits is made before training, and no forward beside it: where training gets through
    all examples, a table of all is no waste. Of labelled words the table has no other tokens than theirs."""
    if objective.teacher_features != {LOGITS} or not isinstance(data, TaskBatches):
        return False
    if isinstance(data.encoded, EncodedWords):
        return data.encoded.by_word
    return settings.epochs >= 1 and (settings.max_steps is None or settings.max_steps >= len(data))


def _logits_table(
    teacher: nn.Module,
    data: TaskBatches,
    reads: TaskBatches | None,
    work: Path,
    on_progress: Callable[[int, int], None],
) -> np.ndarray:
    """[row, output] over the training examples, [word, label], or [token, 2] of all windows; kept in `work`, so that a resumed run, and
    another process, reads the same numbers."""
    path, read = work / "teacher-logits.npy", reads or data
    if not path.exists():
        with replacing(path) as part:
            if isinstance(data.encoded, EncodedSpans):
                parts = read.encoded if isinstance(read.encoded, EncodedParts) else None
                table = span_tables.created(part, data.encoded)
                put_token_logits(table, teacher, data.encoded, read.pad_id, parts=parts, on_progress=on_progress)
                table.flush()
            else:
                logits = read.encoded.by_row(predict_logits(teacher, read.encoded, read.pad_id, on_progress))
                with part.open("wb") as file:
                    np.save(file, logits, allow_pickle=False)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def task_sample(task: TaskSource, tokenizer: Any, pad: int, *, tokens: int) -> list[Batch]:
    """The first training examples, `tokens` in all, as padded batches: for what looks at a teacher's activations."""
    encoded = task.encoded("train", tokenizer, task.spec.max_length)
    count = int(np.searchsorted(np.cumsum(encoded.lengths), tokens)) + 1
    chunks = sorted_chunks(encoded.lengths[:count])
    return [to_tensors(collate(encoded, chunk, pad), torch.device("cpu")) for chunk in chunks]


def set_dropout(model: Any, rate: float | None) -> None:
    """Set every dropout of the running model; None leaves them. Its config keeps the model's own rates, so that what is
    saved does not carry a stage's into the next."""
    if rate is None:
        return
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        for name in ("dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, rate)
