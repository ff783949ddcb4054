"""Training: the loop, its schedule and its resumable state."""

from .loading import Batches
from .loop import Outcome, StepReport, train
from .precision import make_accelerator

__all__ = ["Batches", "Outcome", "StepReport", "make_accelerator", "train"]
