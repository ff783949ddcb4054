"""The spec of `finetune`."""

from __future__ import annotations

from .training import PerTask, Training


class Finetune(PerTask, Training):
    """Fine-tune the teacher on the task's labels."""
