"""Loss terms as a recipe writes them. The mathematics is in `compress.losses`; names agree, by a test."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .base import NonNegative, Positive, PositiveNumber, Spec


class SoftTarget(Spec):
    """T² · KL(teacher ‖ student) of the classes; for regression, squared error to the teacher's score."""

    name: Literal["soft_target"] = "soft_target"
    weight: NonNegative = 1.0
    temperature: PositiveNumber = 2.0


class HardLabel(Spec):
    """Cross-entropy with the gold label; for regression, squared error."""

    name: Literal["hard_label"] = "hard_label"
    weight: NonNegative = 1.0


class HiddenCosine(Spec):
    """1 - cosine of the last hidden states, over real tokens."""

    name: Literal["hidden_cosine"] = "hidden_cosine"
    weight: NonNegative = 1.0


class SoftCrossEntropy(Spec):
    """Cross-entropy with the teacher's softened classes; for regression, squared error to the gold score."""

    name: Literal["soft_cross_entropy"] = "soft_cross_entropy"
    weight: NonNegative = 1.0
    temperature: PositiveNumber = 1.0


class EmbeddingMse(Spec):
    """Squared error of the embedding outputs, through a learned projection where widths differ."""

    name: Literal["embedding_mse"] = "embedding_mse"
    weight: NonNegative = 1.0


class HiddenMse(Spec):
    """Squared error of the hidden states of matched layers, through a learned projection where widths differ."""

    name: Literal["hidden_mse"] = "hidden_mse"
    weight: NonNegative = 1.0


class AttentionMse(Spec):
    """Squared error of the attention scores, before softmax, of matched layers; needs equal head counts."""

    name: Literal["attention_mse"] = "attention_mse"
    weight: NonNegative = 1.0


class RelationKl(Spec):
    """KL of the relations between queries, between keys and between values of one layer (MiniLM v2)."""

    name: Literal["relation_kl"] = "relation_kl"
    weight: NonNegative = 1.0
    relations: Annotated[tuple[Literal["queries", "keys", "values"], ...], Field(min_length=1)] = (
        "queries",
        "keys",
        "values",
    )
    heads: Positive | None = Field(default=None, description="relation heads; default: the teacher's heads")
    teacher_layer: Positive | None = Field(default=None, description="counted from 1; default: the last")
    student_layer: Positive | None = Field(default=None, description="counted from 1; default: the last")


class BlockSpread(Spec):
    """How far the blocks of an `untied` ALBERT are from the mean that they will share; no teacher has a say in it."""

    name: Literal["block_spread"] = "block_spread"
    weight: NonNegative = 1.0
    groups: Positive | None = Field(
        default=None, description="distinct blocks that will remain; default: as many as the student's card says"
    )


class SentenceOrder(Spec):
    """Cross-entropy of whether two consecutive segments of plain text are swapped (ALBERT), on the pooler's output."""

    name: Literal["sentence_order"] = "sentence_order"
    weight: NonNegative = 1.0


class NextSentence(Spec):
    """Cross-entropy of whether a segment of plain text follows the one before it or is another document's (BERT), on
    the pooler's output."""

    name: Literal["next_sentence"] = "next_sentence"
    weight: NonNegative = 1.0


class MaskedTokens(Spec):
    """Cross-entropy of the hidden tokens of plain text (BERT), through a head tied to the model's table of words."""

    name: Literal["masked_lm"] = "masked_lm"
    weight: NonNegative = 1.0
    whole_words: bool = Field(
        default=False,
        exclude_if=lambda value: value is False,  # what is dumped decides the store's keys
        description="all pieces of a word are hidden, or none",
    )
    masks: Positive | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="different choices of hidden tokens before a sequence has its first again, 10 in BERT; default: a new "
        "one each time, as in RoBERTa",
    )


class MaskedSoftTarget(Spec):
    """T² · KL(teacher ‖ student) over the vocabulary at the hidden tokens of plain text (DistilBERT's pre-training), between
    what the masked-LM heads of both say."""

    name: Literal["masked_soft_target"] = "masked_soft_target"
    weight: NonNegative = 1.0
    temperature: PositiveNumber = 2.0


LossSpec = Annotated[
    SoftTarget
    | HardLabel
    | HiddenCosine
    | SoftCrossEntropy
    | EmbeddingMse
    | HiddenMse
    | AttentionMse
    | RelationKl
    | BlockSpread
    | SentenceOrder
    | NextSentence
    | MaskedTokens
    | MaskedSoftTarget,
    Field(discriminator="name"),
]
TextLossSpec = Annotated[MaskedTokens | NextSentence | SentenceOrder, Field(discriminator="name")]
OF_CLASSES = ("soft_target", "hard_label", "soft_cross_entropy")  # losses that read the head's logits
OF_PAIRS = ("sentence_order", "next_sentence")  # of those of text, losses that read pairs of segments
TEXT_LABELS = (*OF_PAIRS, "masked_lm")  # losses whose labels come from plain text, and not from a teacher
OF_TOKENS = ("masked_lm", "masked_soft_target")  # losses that read masked-LM heads
OF_TEXT = (*TEXT_LABELS, "masked_soft_target")  # losses that read plain text alone
LayerMap = (
    Literal["uniform", "top", "bottom"]
    | Annotated[tuple[tuple[Positive, Positive], ...], Field(min_length=1, description="(student, teacher), from 1")]
)
