"""Start and end logits for every token, from its last state alone, with transformers' question answering classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...losses.loss import LossForm
from ...losses.spans import span_cross_entropy_loss, span_kl_loss, span_soft_cross_entropy_loss
from ...sessions.outputs import SPAN_LOGITS
from .head import Head

if TYPE_CHECKING:
    from torch import Tensor


def _from_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return span_kl_loss(student, teacher, batch["compared"], temperature=spec.temperature)


def _towards_teacher(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return span_soft_cross_entropy_loss(student, teacher, batch["compared"], temperature=spec.temperature)


def _from_gold(spec: Any, student: Tensor, teacher: Any, batch: Mapping[str, Tensor]) -> Tensor:
    return span_cross_entropy_loss(student, batch["labels"], batch["compared"])


SPAN = Head(
    model="AutoModelForQuestionAnswering",
    suffixes=(
        "ForQuestionAnswering",
        "ForQuestionAnsweringSimple",
    ),  # the second is XLNet's, whose class of the first name is a beam search
    others=("XLNetForQuestionAnswering",),
    trained=("qa_outputs.", "classifier."),  # ModernBERT uses the token classifier's name, with a layer before it
    new=("qa_outputs.", "classifier.", "head."),
    losses={
        "soft_target": LossForm(_from_teacher),
        "soft_cross_entropy": LossForm(_towards_teacher),
        "hard_label": LossForm(_from_gold),
    },
    on_tokens="qa_outputs",
    outputs=SPAN_LOGITS,
)
