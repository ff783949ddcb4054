"""Logits of the classes, from the first token's state."""

from __future__ import annotations

from .head import Head

CLASSIFICATION = Head(
    model="AutoModelForSequenceClassification",
    suffix="ForSequenceClassification",
    trained="classifier.",
    new=("classifier.", "pre_classifier.", "pooler.", "head."),
)
