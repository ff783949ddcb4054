"""Class logits from the first token's state; in XLNet, whose head has another name, from the last token's."""

from __future__ import annotations

from .head import Head

CLASSIFICATION = Head(
    model="AutoModelForSequenceClassification",
    suffixes=("ForSequenceClassification",),
    trained=("classifier.", "logits_proj."),
    new=("classifier.", "pre_classifier.", "pooler.", "head.", "sequence_summary.", "logits_proj."),
)
