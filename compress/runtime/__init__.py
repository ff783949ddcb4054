"""Run a shipped bundle, or any folder with the same names in it: onnxruntime, tokenizers and numpy, no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from .classifier import Classifier
from .folder import read_settings
from .kinds import Entity, LabelsPrediction, Prediction, RelevancePrediction
from .kinds.ranking import RANKING
from .opened import Options
from .ranker import Ranked, Ranker
from .tagger import Tagger

__all__ = [
    "Classifier",
    "Entity",
    "LabelsPrediction",
    "Prediction",
    "Ranked",
    "Ranker",
    "RelevancePrediction",
    "Tagger",
    "load",
]


def load(folder: str | Path, **options: Unpack[Options]) -> Classifier | Tagger:
    """A `Tagger` where the model of `folder` labels words, a `Ranker`, which is a `Classifier` too, where it ranks passages, else a
    `Classifier`; with their options. `predict` of each gives a list of answers. Raises as they do."""
    kind = read_settings(Path(folder)).kind
    if kind.words:
        return Tagger(folder, **options)
    return Ranker(folder, **options) if kind is RANKING else Classifier(folder, **options)
