"""One output, how well an ending fits a context, from the encoder's pooler, with transformers' multiple-choice classes. Every loss is over
the endings of one question."""

from __future__ import annotations

from dataclasses import replace

from .ranking import RANKING

CHOICE = replace(
    RANKING,
    model="AutoModelForMultipleChoice",
    suffixes=("ForMultipleChoice",),
    pooled=True,
)
