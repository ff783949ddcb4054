"""What a model answers, by the class that its checkpoint names. Needs numpy alone, since the peers' processes ask it too."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np


def _classes(logits: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _margins(logits)


def _labels(logits: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return _margins(logits[mask == 1])


def _places(logits: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    real = np.where(mask[..., None] == 1, logits, -np.inf)
    return logits[mask == 1].ravel(), real.argmax(1).ravel()


def _margins(logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    margins = logits[..., 1] - logits[..., 0]
    return margins, margins > 0


@dataclass(frozen=True)
class Head:
    """`kind`: of the tasks that it is for. `suffix` ends the names of its classes, in transformers and in optimum. `compared`: of
    (logits, mask) the numbers that are correlated with torch's, and the decisions."""

    kind: Literal["classification", "tagging", "span"]
    suffix: str
    labels: tuple[str, ...]
    compared: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


HEADS = {
    head.kind: head
    for head in (
        Head("classification", "ForSequenceClassification", ("a", "b"), _classes),
        Head("tagging", "ForTokenClassification", ("a", "b"), _labels),
        Head("span", "ForQuestionAnswering", ("start", "end"), _places),
    )
}


def class_name(checkpoint: Path) -> str:
    """The class of transformers that the folder `checkpoint` is to be opened with."""
    return json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))["architectures"][0]


def head_of(checkpoint: Path) -> Head:
    return next(head for head in HEADS.values() if class_name(checkpoint).endswith(head.suffix))


def side_by_side(outputs: Sequence[Any]) -> np.ndarray:
    """The one output of a graph, or its several, such as the logits of starts and of ends, as the last axis."""
    return np.asarray(outputs[0]) if len(outputs) == 1 else np.stack([np.asarray(one) for one in outputs], -1)
