"""Run a shipped bundle, or any folder with the same names in it: onnxruntime, tokenizers and numpy, no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from .classifier import Classifier
from .embedder import Embedder
from .folder import read_settings
from .kinds import Entity, LabelsPrediction, Prediction
from .kinds.kind import Unit
from .opened import Options
from .tagger import Tagger

__all__ = ["Classifier", "Embedder", "Entity", "LabelsPrediction", "Prediction", "Tagger", "load"]


_CLASSES: dict[Unit, type[Classifier | Tagger | Embedder]] = {"text": Classifier, "word": Tagger, "pair": Embedder}


def load(folder: str | Path, **options: Unpack[Options]) -> Classifier | Tagger | Embedder:
    """A `Tagger` where the model of `folder` labels words, an `Embedder` where it gives texts vectors, else a `Classifier`; with their
    options. `predict` of each gives a list of answers. Raises as they do."""
    return _CLASSES[read_settings(Path(folder)).kind.unit](folder, **options)
