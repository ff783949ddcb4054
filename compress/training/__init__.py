"""Training: the loop, its schedule and its resumable state."""

from .devices import make_accelerator
from .loop import Outcome, StepReport, TrainingData, train

__all__ = ["Outcome", "StepReport", "TrainingData", "make_accelerator", "train"]
