"""Heads by the class in the checkpoint's config. Needs only numpy, since the peers' processes import it too."""

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
    """`kind`: of the tasks that the head is for. `suffix`: the ending of its class names in transformers and optimum. `compared`: maps
    (logits, mask) to the numbers that are correlated with torch's, and the decisions."""

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
    """Return the class of transformers that opens the folder `checkpoint`."""
    return json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))["architectures"][0]


def head_of(checkpoint: Path) -> Head:
    return next(head for head in HEADS.values() if class_name(checkpoint).endswith(head.suffix))


def side_by_side(outputs: Sequence[Any]) -> np.ndarray:
    """Return a graph's one output, or stack its several, such as the logits of starts and of ends, along the last axis."""
    return np.asarray(outputs[0]) if len(outputs) == 1 else np.stack([np.asarray(one) for one in outputs], -1)
