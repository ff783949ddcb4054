"""Training: the loop, its schedule and its resumable state."""

from .devices import make_accelerator
from .loop import Batches, Outcome, StepReport, train

__all__ = ["Batches", "Outcome", "StepReport", "make_accelerator", "train"]
