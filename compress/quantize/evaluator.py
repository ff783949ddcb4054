"""Evaluation of quantization candidates on texts held out from training."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from ..graphs.model_files import write_model
from ..stats.fidelity import differ, logit_difference
from ..stats.flip_goals import flip_interval, flip_rate
from ..tasks import TaskKind
from .sampling import Feed


@dataclass(frozen=True)
class Evaluator:
    """What a search measures on texts held out from training, and on further texts whose labels are not used.

    `few`, `all`: graph file -> outputs [text, output], of some held-out texts, to compare matmuls, and of all texts,
    held-out ones first. `score_few`, `score`: those outputs -> points; further texts are not scored. `texts`: the number of
    texts in `all`, by split. `times`: graph file -> node -> milliseconds. `feeds`: padded batches for smoothing. `kind`: the
    task's. `folder`: where measurements are stored, so that an interrupted search can resume.
    """

    few: Callable[[Path], np.ndarray]
    all: Callable[[Path], np.ndarray]
    score_few: Callable[[np.ndarray], float]
    score: Callable[[np.ndarray], float]
    texts: Mapping[str, int]
    times: Callable[[Path], Mapping[str, float]]
    feeds: Sequence[Feed]
    kind: TaskKind
    folder: Path
    on_progress: Callable[[int, int], None] = lambda done, total: None

    def losses_against(self, fp32: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
        """Return the loss of `outputs` against `fp32`: points; over all texts, flips in percent, their count, the 95%
        interval of the flip rate, and the rate that is compared with a goal (`flip_rate`); and the mean absolute difference
        of logits."""
        lost: dict[str, Any] = {"drop": round(self.score(fp32) - self.score(outputs), 4)}
        if self.kind.decisions:
            flips, texts = int(differ(self.kind.answers(fp32), self.kind.answers(outputs)).sum()), len(fp32)
            lost |= {
                "flips": round(100 * flips / texts, 4),
                "flipped": flips,
                "flips_interval": [round(end, 4) for end in flip_interval(flips, texts)],
                "flips_judged": round(flip_rate(flips, texts), 4),
            }
        difference, _ = logit_difference(self.kind.logits(fp32), self.kind.logits(outputs))
        return lost | {"mean_logit_difference": round(difference, 6)}


def measure_file(model: ModelProto, ask: Callable[[Path], Any]) -> Any:
    """Return `ask` of a temporary file that holds `model`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "candidate.onnx"
        write_model(model, path)
        return ask(path)
