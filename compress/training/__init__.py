"""Training: the loop, its schedule and its resumable state."""

from .loop import Outcome, StepReport, TrainingData, train

__all__ = ["Outcome", "StepReport", "TrainingData", "train"]
