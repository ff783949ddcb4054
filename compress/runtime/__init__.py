"""Run a shipped bundle, or any folder with the same file names: needs onnxruntime, tokenizers and numpy, no torch."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from ..files.paths import expand_home
from .chooser import Chooser
from .classifier import Classifier
from .embedder import Embedder
from .folder import read_settings
from .kinds import Answer, Chosen, Entity, LabelsPrediction, Prediction, RelevancePrediction
from .kinds.kind import Unit
from .kinds.ranking import RANKING
from .model_folder import Options
from .ranker import Ranked, Ranker
from .reader import Reader
from .tagger import LabelledWords, Tagger

__all__ = [
    "Answer",
    "Chooser",
    "Chosen",
    "Classifier",
    "Embedder",
    "Entity",
    "LabelledWords",
    "LabelsPrediction",
    "Prediction",
    "Ranked",
    "Ranker",
    "Reader",
    "RelevancePrediction",
    "Tagger",
    "load",
]

_CLASSES: dict[Unit, type[Classifier | Tagger | Reader | Chooser | Embedder]] = {
    "text": Classifier,
    "word": Tagger,
    "question": Reader,
    "choice": Chooser,
    "pair": Embedder,
}


def load(folder: str | Path, **options: Unpack[Options]) -> Classifier | Tagger | Reader | Chooser | Embedder:
    """Open `folder`: as a `Tagger` if its model labels words, a `Reader` if it answers questions, a `Chooser` if it chooses among endings,
    an `Embedder` if it makes vectors of texts, a `Ranker`, which is a `Classifier` too, if it ranks passages, else a `Classifier`;
    `options` are theirs. `predict` of each returns a list of answers. Raises as they do."""
    kind = read_settings(expand_home(folder)).kind
    return Ranker(folder, **options) if kind is RANKING else _CLASSES[kind.unit](folder, **options)
