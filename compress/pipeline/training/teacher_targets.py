"""What the training loop needs of a teacher: features of each batch, or a table of its logits. Also the dropout of the model it trains."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn

from ...files.atomic import replacing
from ...losses.features import LOGITS
from ...losses.spans import moved_logits
from ...models.families import FAMILIES
from ...models.features.named import Batch, Features, compute_features
from ...models.features.predict import predict_logits, put_token_logits, to_tensors
from ...objective import Objective
from ...processes import ranks
from ...spec.stages import Training
from ...tasks import (
    Encoded,
    EncodedParts,
    EncodedSpans,
    EncodedWords,
    TaskBatches,
    collate,
    sorted_chunks,
    span_tables,
)
from ...training import Batches
from ..plan.sources import TaskSource


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
    """Return a function for the teacher's features of a batch: none, its logits from a table computed once, or a forward per batch.

    `reads`: the same examples in the teacher's tokens, if those are not the student's. For labelled words these are other windows, and the
    teacher's answers come from a table of all words; for questions they are the student's windows, and the teacher's logits are moved to
    the student's tokens. `on_progress`, for a table: called with how many examples are done, and how many there are.
    """
    wanted = objective.teacher_features
    if teacher is None or not wanted:
        return lambda batch, indices: {}
    teacher = teacher.eval().requires_grad_(False).to(accelerator.device)
    if objective.masked_lm is not None:
        objective.masked_lm.teacher_to(accelerator.device)
    if isinstance(data, TaskBatches) and answers_once(objective, data, settings):
        with ranks.first_process_goes_first():
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
    """Return a function that looks up the logits of a batch of `encoded`, the training examples, in a table: float32 [example, output]; for
    words [word, label], at the tokens that represent them (other tokens get arbitrary rows, which no loss compares); or for all windows of
    questions [token, 2] (`span_tables`), which stay on disk."""
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
        logits = span_tables.padded_outputs(table, windows, indices, batch["input_ids"].shape[1])
        return {LOGITS: to_tensors({LOGITS: logits}, accelerator.device)[LOGITS]}

    return look_up


def answers_once(objective: Objective, data: Batches, settings: Training) -> bool:
    """Whether a table of the teacher's logits is computed before training, in place of forwards during it: if training passes over all
    examples, a full table is no waste. For labelled words the table only has tokens that represent words."""
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
    """Return [row, output] over the training examples, [word, label], or [token, 2] of all windows; saved in `work`, so that a resumed run,
    and other processes, read the same numbers."""
    path, read = work / "teacher-logits.npy", reads or data
    if not path.exists():
        with replacing(path) as part:
            if isinstance(data.encoded, EncodedSpans):
                parts = read.encoded if isinstance(read.encoded, EncodedParts) else None
                table = span_tables.create_table(part, data.encoded)
                put_token_logits(table, teacher, data.encoded, read.pad_id, parts=parts, on_progress=on_progress)
                table.flush()
            else:
                logits = read.encoded.by_row(predict_logits(teacher, read.encoded, read.pad_id, on_progress))
                with part.open("wb") as file:
                    np.save(file, logits, allow_pickle=False)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def task_sample(task: TaskSource, tokenizer: Any, pad: int, *, tokens: int) -> list[Batch]:
    """Return the first training examples, `tokens` in all, as padded batches, for code that reads a teacher's activations."""
    encoded = task.encoded("train", tokenizer, task.spec.max_length)
    count = int(np.searchsorted(np.cumsum(encoded.lengths), tokens)) + 1
    chunks = sorted_chunks(encoded.lengths[:count])
    return [to_tensors(collate(encoded, chunk, pad), torch.device("cpu")) for chunk in chunks]


def set_dropout(model: Any, rate: float | None) -> None:
    """Set every dropout of the running model; None leaves them. The config keeps the model's own rates, so that a saved checkpoint does not
    carry a stage's rate into the next."""
    if rate is None:
        return
    optional = [family.optional_dropout.module for family in FAMILIES.values() if family.optional_dropout]
    for module in list(model.modules()):
        for name in optional:
            if rate and isinstance(getattr(module, name, None), nn.Identity):
                setattr(module, name, nn.Dropout(rate))
        if isinstance(module, nn.Dropout):
            module.p = rate
        for name in ("dropout_prob", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, rate)
