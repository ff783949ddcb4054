"""Logits of the classes, from the first token's state; in an XLNet, which calls its head otherwise, from the last token's."""

from __future__ import annotations

from .head import Head

CLASSIFICATION = Head(
    model="AutoModelForSequenceClassification",
    suffixes=("ForSequenceClassification",),
    trained=("classifier.", "logits_proj."),
    new=("classifier.", "pre_classifier.", "pooler.", "head.", "sequence_summary.", "logits_proj."),
)
