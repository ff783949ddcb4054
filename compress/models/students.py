"""Build a student and start it from its teacher."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..errors import CompressError
from ..spec.cards import StudentCard
from .dimensions import Dimensions
from .layers import copied_layers

if TYPE_CHECKING:
    from torch import Tensor, nn

# DistilBERT's module names, by family of the teacher: (teacher's layer prefix, {student part: teacher part}).
_PARTS: dict[str, tuple[str, dict[str, str]]] = {
    "bert": (
        "bert.encoder.layer",
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
        "distilbert.transformer.layer",
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


def student_dimensions(card: StudentCard, teacher: Dimensions) -> Dimensions:
    """The student's sizes. Raises `CompressError` naming the two things that do not fit."""
    if teacher.architecture not in _PARTS:
        raise CompressError(
            f"student {card.name} is a DistilBERT, which starts from {' or '.join(_PARTS)}; the teacher is {teacher.architecture}"
        )
    for field in ("hidden", "heads", "intermediate"):
        wanted, found = getattr(card, field), getattr(teacher, field)
        if wanted is not None and wanted != found:
            raise CompressError(
                f"student {card.name}: {field} is {wanted} and the teacher's is {found}; copied layers need the teacher's sizes"
            )
    copied_layers(card.copy_layers, teacher_layers=teacher.layers, student_layers=card.layers, card=card.name)
    return replace(
        teacher, architecture="distilbert", layers=card.layers, distinct_layers=card.layers, token_types=0, pooled=True
    )


def build_student(card: StudentCard, teacher: Any, sizes: Dimensions) -> nn.Module:
    """A `DistilBertForSequenceClassification` that starts from `teacher`, a BERT or DistilBERT classifier.

    Token types go: the row of segment A is folded into the positions. The pooler becomes
    `pre_classifier` (its tanh becomes DistilBERT's ReLU), and the classifier is kept.
    """
    from transformers import DistilBertForSequenceClassification

    student = DistilBertForSequenceClassification(_distilbert_config(teacher.config, sizes))
    state = _initial_state(card, teacher, sizes)
    student.load_state_dict(state, strict=True)
    return student


def _distilbert_config(teacher: Any, sizes: Dimensions) -> Any:
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


def _initial_state(card: StudentCard, teacher: Any, sizes: Dimensions) -> dict[str, Tensor]:
    family = teacher.config.model_type
    source = teacher.state_dict()
    prefix, parts = _PARTS[family]
    layers = copied_layers(
        card.copy_layers, teacher_layers=teacher.config.num_hidden_layers, student_layers=sizes.layers, card=card.name
    )
    state = {
        f"distilbert.transformer.layer.{mine}.{part}.{kind}": source[f"{prefix}.{theirs}.{parts[part]}.{kind}"]
        for mine, theirs in enumerate(layers)
        for part in parts
        for kind in ("weight", "bias")
    }
    positions = source[f"{family}.embeddings.position_embeddings.weight"]
    if family == "bert":
        positions = positions + source["bert.embeddings.token_type_embeddings.weight"][0]
    state["distilbert.embeddings.position_embeddings.weight"] = positions
    state["distilbert.embeddings.word_embeddings.weight"] = source[f"{family}.embeddings.word_embeddings.weight"]
    for kind in ("weight", "bias"):
        state[f"distilbert.embeddings.LayerNorm.{kind}"] = source[f"{family}.embeddings.LayerNorm.{kind}"]
        state[f"pre_classifier.{kind}"] = source[f"{_HEAD[family]}.{kind}"]
        state[f"classifier.{kind}"] = source[f"classifier.{kind}"]
    return {name: tensor.clone() for name, tensor in state.items()}
