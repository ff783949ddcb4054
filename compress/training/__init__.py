"""Training: the loop, its schedule and its resumable state."""

from .batches import Batches
from .devices import make_accelerator
from .loop import Outcome, StepReport, train

__all__ = ["Batches", "Outcome", "StepReport", "make_accelerator", "train"]
