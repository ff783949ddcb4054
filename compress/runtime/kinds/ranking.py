"""One output -> the relevance of a passage to a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .kind import AnswerKind, Names, RelevancePrediction
from .multilabel import sigmoid

# Fields by which a cross-encoder of sentence-transformers names the activation of its output: now, and before version 4.
_TODAY, _BEFORE = "sentence_transformers", "sbert_ce_default_activation_function"
IDENTITY = "torch.nn.modules.linear.Identity"


def is_cross_encoder(config: Mapping[str, Any], outputs: int) -> bool:
    """Whether config.json belongs to a cross-encoder of sentence-transformers, with one score."""
    return outputs == 1 and (_TODAY in config or _BEFORE in config)


def _answers(names: Names, outputs: np.ndarray) -> Iterator[RelevancePrediction]:
    for score, probability in zip(outputs[:, 0], sigmoid(outputs[:, 0]), strict=True):
        yield RelevancePrediction(None, float(score), probability=float(probability))


RANKING = AnswerKind(
    problem_type="regression",
    fits=lambda problem, outputs: problem in (None, "regression") and outputs == 1,
    output_names=lambda labels: labels or ("score",),
    answers=_answers,
    cells=lambda answer: (answer.score, None),
    line=lambda answer: f"{answer.score:.4f}",
    fields=lambda answer: {"score": answer.score, "probability": answer.probability},
    config={_TODAY: {"activation_fn": IDENTITY}},  # after a sigmoid, high scores would be equal in float32
)
