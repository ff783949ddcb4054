"""DistilBERT students (Sanh et al. 2019, arXiv:1910.01108, §3): no token types, and no pooler.

Token types go: the row of segment A is folded into the positions. The pooler becomes
`pre_classifier` (its tanh becomes DistilBERT's ReLU), and the classifier is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dimensions import Dimensions

if TYPE_CHECKING:
    from torch import Tensor

# By family of the teacher: (its layers' prefix, {student part: teacher part}).
_PARTS: dict[str, tuple[str, dict[str, str]]] = {
    "bert": (
        "encoder.layer",
        {
            "attention.q_lin": "attention.self.query",
            "attention.k_lin": "attention.self.key",
            "attention.v_lin": "attention.self.value",
            "attention.out_lin": "attention.output.dense",
            "sa_layer_norm": "attention.output.LayerNorm",
            "ffn.lin1": "intermediate.dense",
            "ffn.lin2": "output.dense",
            "output_layer_norm": "output.LayerNorm",
        },
    ),
    "distilbert": (
        "transformer.layer",
        {
            name: name
            for name in (
                *(f"attention.{part}_lin" for part in ("q", "k", "v", "out")),
                *("sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
            )
        },
    ),
}
_HEAD = {"bert": "bert.pooler.dense", "distilbert": "pre_classifier"}


def student_config(teacher: Any, sizes: Dimensions) -> Any:
    """A `DistilBertConfig` of `sizes` with the teacher's dropouts, activation and labels."""
    from transformers import DistilBertConfig

    bert = teacher.model_type == "bert"
    return DistilBertConfig(
        vocab_size=sizes.vocabulary,
        max_position_embeddings=sizes.positions,
        n_layers=sizes.layers,
        n_heads=sizes.heads,
        dim=sizes.hidden,
        hidden_dim=sizes.intermediate,
        dropout=teacher.hidden_dropout_prob if bert else teacher.dropout,
        attention_dropout=teacher.attention_probs_dropout_prob if bert else teacher.attention_dropout,
        seq_classif_dropout=teacher.hidden_dropout_prob if bert else teacher.seq_classif_dropout,
        activation=teacher.hidden_act if bert else teacher.activation,
        pad_token_id=teacher.pad_token_id,
        initializer_range=teacher.initializer_range,
        id2label=teacher.id2label,
        label2id=teacher.label2id,
        problem_type=teacher.problem_type,
    )


def copied_body(source: dict[str, Tensor], family: str, layers: Sequence[int]) -> dict[str, Tensor]:
    """State of a `DistilBertModel` out of that of the teacher's encoder."""
    prefix, parts = _PARTS[family]
    state = {
        f"transformer.layer.{mine}.{part}.{kind}": source[f"{prefix}.{theirs}.{parts[part]}.{kind}"]
        for mine, theirs in enumerate(layers)
        for part in parts
        for kind in ("weight", "bias")
    }
    positions = source["embeddings.position_embeddings.weight"]
    if family == "bert":
        positions = positions + source["embeddings.token_type_embeddings.weight"][0]
    state["embeddings.position_embeddings.weight"] = positions
    for name in ("word_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias"):
        state[f"embeddings.{name}"] = source[f"embeddings.{name}"]
    return state


def copied_head(source: dict[str, Tensor], family: str) -> dict[str, Tensor]:
    """State of the head of a `DistilBertForSequenceClassification` out of that of the teacher's classifier."""
    names = {"pre_classifier": _HEAD[family], "classifier": "classifier"}
    return {
        f"{mine}.{kind}": source[f"{theirs}.{kind}"] for mine, theirs in names.items() for kind in ("weight", "bias")
    }
