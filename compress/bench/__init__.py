"""Latency of models, each in a process of its own, interleaved with the baseline and a second copy of it."""

from __future__ import annotations

from .intervals import NARROW
from .latency import AGAIN, measure
from .spec import RIGOR, BenchSpec, Candidate, Rigor

__all__ = ["AGAIN", "NARROW", "RIGOR", "BenchSpec", "Candidate", "Rigor", "measure"]
