"""Logits of the labels of each word -> the most probable one."""

from __future__ import annotations

from .classification import CLASSIFICATION
from .kind import AnswerKind

TAGGING = AnswerKind(
    problem_type=None,
    fits=lambda problem, outputs: False,  # config.json tells it by the name of its class
    output_names=lambda labels: labels,
    answers=CLASSIFICATION.answers,
    cells=CLASSIFICATION.cells,
    line=CLASSIFICATION.line,
)
