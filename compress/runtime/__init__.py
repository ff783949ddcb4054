"""Run a shipped bundle, or any folder with the same names in it: onnxruntime, tokenizers and numpy, no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from .classifier import Classifier
from .folder import read_settings
from .kinds import Entity, LabelsPrediction, Prediction
from .opened import Options
from .tagger import Tagger

__all__ = ["Classifier", "Entity", "LabelsPrediction", "Prediction", "Tagger", "load"]


def load(folder: str | Path, **options: Unpack[Options]) -> Classifier | Tagger:
    """A `Tagger` where the model of `folder` labels words, else a `Classifier`; with their options. `predict` of either gives a
    list of answers. Raises as they do."""
    words = read_settings(Path(folder)).kind.words
    return Tagger(folder, **options) if words else Classifier(folder, **options)
