"""Run a shipped bundle, or any folder with the same names in it: onnxruntime, tokenizers and numpy, no torch."""

from __future__ import annotations

from .classifier import Classifier
from .kinds import LabelsPrediction, Prediction

__all__ = ["Classifier", "LabelsPrediction", "Prediction"]
