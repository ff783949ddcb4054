"""One output, how well an ending fits a context, from what the encoder's pooler makes of the first token, by transformers' classes for
multiple choice; every loss on it is of the endings of one question."""

from __future__ import annotations

from dataclasses import replace

from .ranking import RANKING

CHOICE = replace(
    RANKING,
    model="AutoModelForMultipleChoice",
    suffixes=("ForMultipleChoice",),
    means_over={"soft_target": "queries", "soft_cross_entropy": "queries", "hard_label": "ranked"},
    pooled=True,
)
