"""BERT students (TinyBERT, Jiao et al. 2020, arXiv:1909.10351, §3.1): the teacher's form with fewer or narrower layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dimensions import Dimensions

if TYPE_CHECKING:
    from torch import Tensor

_LAYER = "encoder.layer."
_KEPT = (
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "classifier_dropout",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
    "id2label",
    "label2id",
    "problem_type",
)


def student_config(teacher: Any, sizes: Dimensions) -> Any:
    """A `BertConfig` of `sizes`; everything that is not a size is the teacher's."""
    from transformers import BertConfig

    return BertConfig(
        vocab_size=sizes.vocabulary,
        max_position_embeddings=sizes.positions,
        type_vocab_size=sizes.token_types,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        hidden_size=sizes.hidden,
        intermediate_size=sizes.intermediate,
        **{name: getattr(teacher, name) for name in _KEPT},
    )


def copied_body(source: dict[str, Tensor], family: str, layers: Sequence[int]) -> dict[str, Tensor]:
    """State of a `BertModel` out of that of the teacher's: embeddings, pooler, and the chosen layers."""
    state = {name: tensor for name, tensor in source.items() if not name.startswith(_LAYER)}
    for mine, theirs in enumerate(layers):
        prefix = f"{_LAYER}{theirs}."
        state |= {
            f"{_LAYER}{mine}.{name.removeprefix(prefix)}": tensor
            for name, tensor in source.items()
            if name.startswith(prefix)
        }
    return state


def copied_head(source: dict[str, Tensor], family: str) -> dict[str, Tensor]:
    """State of the head of a `BertForSequenceClassification`; its pooler is part of the encoder."""
    return {name: source[name] for name in ("classifier.weight", "classifier.bias")}
