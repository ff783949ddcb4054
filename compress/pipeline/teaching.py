"""What the training loop asks of a teacher and of the tuning split."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ..models.features import Features, compute_features
from ..models.predict import predict_logits
from ..objective import Objective
from ..tasks import Encoded, TaskData, headline, score
from ..training import TrainingData


def tuning_score(data: TaskData, tuning: Encoded, pad: int) -> Callable[[nn.Module], float]:
    """A function that scores a model on the tuning split, in headline points."""

    def evaluate(model: nn.Module) -> float:
        return headline(score(data.spec, data.labels, predict_logits(model, tuning, pad), data.tuning.labels))

    return evaluate


def teacher_features(
    teacher: Any, objective: Objective, data: TrainingData, work: Path, accelerator: Accelerator
) -> Callable[[dict[str, Tensor], np.ndarray], Features]:
    """The teacher's features for a batch: none, its logits from a table made once, or a forward per batch."""
    wanted = objective.teacher_features
    if teacher is None or not wanted:
        return lambda batch, indices: {}
    teacher = teacher.eval().requires_grad_(False).to(accelerator.device)
    if wanted == {"logits"}:
        table = torch.from_numpy(_logits_table(teacher, data, work)).to(accelerator.device)
        return lambda batch, indices: {"logits": table[torch.from_numpy(indices).to(accelerator.device)]}

    def forward(batch: dict[str, Tensor], indices: np.ndarray) -> Features:
        with torch.no_grad():
            return compute_features(teacher, batch, wanted)

    return forward


def _logits_table(teacher: nn.Module, data: TrainingData, work: Path) -> np.ndarray:
    """[example, class] over the training split; kept in `work`, so that a resumed run reads the same numbers."""
    path = work / "teacher-logits.npy"
    if path.exists():
        return np.load(path, allow_pickle=False)
    logits = predict_logits(teacher, data.encoded, data.pad_id)
    temporary = path.with_name("teacher-logits.tmp.npy")
    with temporary.open("wb") as file:
        np.save(file, logits, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return logits
