"""How a candidate answers texts that were put aside from training."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from ..fidelity import differ, logit_difference
from ..goals import flip_interval, flip_rate
from ..graphs.model_files import write_model
from ..tasks import TaskKind
from .sampling import Feed


@dataclass(frozen=True)
class Evaluator:
    """What a search asks of texts that were put aside from training, and of further ones whose labels are not looked at.

    `few`, `all`: graph file -> outputs [text, output] of some texts put aside, to tell matmuls apart, and of all texts, those
    put aside first. `score_few`, `score`: those outputs -> points; further texts have none. `texts`: how many `all` answers, by
    the split that they are of. `times`: graph file -> node -> milliseconds. `feeds`: padded batches, for the smoothing.
    `kind`: the task's. `folder`: where what was measured is kept, so that an interrupted search goes on.
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

    def lost(self, fp32: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
        """Points; of all texts, flips in percent, their count, the 95% interval of the share, and the share that is held against
        a goal (`flip_rate`); and the mean |difference| of logits."""
        lost: dict[str, Any] = {"drop": round(self.score(fp32) - self.score(outputs), 4)}
        if self.kind.decides:
            flips, texts = int(differ(self.kind.answers(fp32), self.kind.answers(outputs)).sum()), len(fp32)
            lost |= {
                "flips": round(100 * flips / texts, 4),
                "flipped": flips,
                "flips_interval": [round(end, 4) for end in flip_interval(flips, texts)],
                "flips_judged": round(flip_rate(flips, texts), 4),
            }
        apart, _ = logit_difference(self.kind.logits(fp32), self.kind.logits(outputs))
        return lost | {"mean_logit_difference": round(apart, 6)}


def asked(model: ModelProto, ask: Callable[[Path], Any]) -> Any:
    """What `ask` says of the file of `model`, which is there for so long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "candidate.onnx"
        write_model(model, path)
        return ask(path)
