"""Metrics in points (0-100; correlations and Matthews × 100), of one set of outputs and on many resamples of the examples."""

from __future__ import annotations

from .answers import AnswersHeadline
from .choices import ChoiceHeadline
from .confusion import ClassHeadline
from .correlation import CorrelationHeadline
from .headline import FEWEST, Headline, Pairs, check_lengths
from .labels import LabelsHeadline
from .ranks import RanksHeadline
from .several import MeanHeadline
from .tags import TagsHeadline, are_entities

__all__ = [
    "FEWEST",
    "AnswersHeadline",
    "ChoiceHeadline",
    "ClassHeadline",
    "CorrelationHeadline",
    "Headline",
    "LabelsHeadline",
    "MeanHeadline",
    "Pairs",
    "RanksHeadline",
    "TagsHeadline",
    "are_entities",
    "check_lengths",
]
