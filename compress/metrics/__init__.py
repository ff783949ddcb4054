"""Metrics in points (0-100; correlations and Matthews × 100), of one set of outputs and on many resamples of the examples."""

from __future__ import annotations

from .confusion import ClassHeadline
from .correlation import CorrelationHeadline
from .headline import FEWEST, Headline, Pairs, check_lengths

__all__ = ["FEWEST", "ClassHeadline", "CorrelationHeadline", "Headline", "Pairs", "check_lengths"]
