"""ModernBERT (Warner et al. 2024, arXiv:2412.13663, §2.1): pre-norm, GeGLU, rotary positions, no segments.

Every third layer attends to the whole text, the others to a window of `local_attention` tokens, with another rotary base. The first layer
has no norm before its attention, because the embeddings end in one.
"""

from __future__ import annotations

from typing import Any

from .counts import Counts, Sizes
from .fields import (
    ACTIVATIONS,
    COMMON,
    FLAG,
    HEAD_DROPOUT,
    MOST_HEADS,
    MOST_LAYERS,
    MOST_POSITIONS,
    MOST_WIDE,
    PROBABILITY,
    Field,
    number,
    one_of,
    whole_number,
)
from .parts import Attention, EncoderLayers, Heads, MaskedLmHead, OptionalDropout, Setting, Student, TokenizerClasses
from .record import Family

_KINDS = ("full_attention", "sliding_attention")
_KEPT = (
    "hidden_activation", "norm_eps", "norm_bias", "attention_bias", "mlp_bias", "attention_dropout", "embedding_dropout",
    "mlp_dropout", "local_attention", "rope_parameters", "classifier_pooling", "classifier_activation", "classifier_bias",
    "classifier_dropout", "decoder_bias", "initializer_range", "initializer_cutoff_factor", "pad_token_id", "bos_token_id",
    "eos_token_id", "cls_token_id", "sep_token_id", "id2label", "label2id", "problem_type",
)  # fmt: skip


def _are_kinds(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= MOST_LAYERS and all(kind in _KINDS for kind in value)


def _are_rope_parameters(value: Any) -> bool:
    """Whether `value` has, per type of layer, the base of rotary positions without scaling."""
    return isinstance(value, dict) and set(value) <= set(_KINDS) and all(map(_is_default_rope, value.values()))


def _is_default_rope(value: Any) -> bool:
    known = isinstance(value, dict) and set(value) <= {"rope_type", "rope_theta"}
    return known and value.get("rope_type", "default") == "default" and _THETA.allows(value.get("rope_theta", 1e4))


_THETA = number(1, 1e12)


def _settings(teacher: Setting) -> dict[str, Any]:
    return {name: teacher(name) for name in _KEPT}


def _embeddings(sizes: Sizes) -> int:
    """Return parameters of the word table and a norm."""
    return sizes.vocabulary * sizes.embedding + _norm(sizes)


def _layer(sizes: Sizes) -> int:
    """Return parameters of two attention matrices, two feed-forward matrices, the first of double width, and two norms."""
    h, f = sizes.hidden, sizes.intermediate
    attention = 4 * h * h + (4 * h if sizes.own["attention_bias"] else 0)
    return attention + 3 * h * f + (2 * f + h if sizes.own["mlp_bias"] else 0) + 2 * _norm(sizes)


def _rest(sizes: Sizes) -> int:
    """Return parameters of the head with its norm. The encoder's final norm makes up for the one that the first layer lacks."""
    h = sizes.hidden
    return h * h + (h if sizes.own["classifier_bias"] else 0) + _norm(sizes) + sizes.classes * (h + 1)


def _norm(sizes: Sizes) -> int:
    return sizes.hidden * (2 if sizes.own["norm_bias"] else 1)


def _layer_flops(sizes: Sizes, length: float) -> float:
    """Return FLOPs of a layer; local layers also multiply all pairs of tokens, and then mask distant ones."""
    h, f = sizes.hidden, sizes.intermediate
    return 2 * length * (4 * h * h + 3 * h * f) + 4 * length * length * h


MODERNBERT = Family(
    name="modernbert",
    title="ModernBERT",
    fields={
        **COMMON,
        **dict.fromkeys(("cls_token_id", "sep_token_id"), COMMON["eos_token_id"]),
        "hidden_size": whole_number(1, MOST_WIDE),
        "num_hidden_layers": whole_number(1, MOST_LAYERS),
        "num_attention_heads": whole_number(1, MOST_HEADS),
        "intermediate_size": whole_number(1, MOST_WIDE),
        "hidden_activation": one_of(*ACTIVATIONS),
        "classifier_activation": one_of(*ACTIVATIONS),
        "classifier_pooling": one_of("cls", "mean"),
        **dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias", "decoder_bias"), FLAG),
        **dict.fromkeys(("attention_dropout", "embedding_dropout", "mlp_dropout"), PROBABILITY),
        "classifier_dropout": HEAD_DROPOUT,
        "norm_eps": number(0, 1),
        "initializer_cutoff_factor": number(0, 100),
        "local_attention": whole_number(2, MOST_POSITIONS),
        "layer_types": Field(_are_kinds, f"for each layer one of {', '.join(_KINDS)}"),
        "global_attn_every_n_layers": whole_number(1, MOST_LAYERS),
        "rope_parameters": Field(
            _are_rope_parameters, f"rope_theta for each of {', '.join(_KINDS)}, with rope_type: default"
        ),
        **dict.fromkeys(("global_rope_theta", "local_rope_theta"), _THETA),
        "position_embedding_type": one_of("absolute", "sans_pos", kept=False),  # in published files, without effect
    },
    own_names={
        "hidden_act": "hidden_activation",
        "layer_norm_eps": "norm_eps",
        "hidden_dropout_prob": "mlp_dropout",
        "attention_probs_dropout_prob": "attention_dropout",
    },
    tokenizer=TokenizerClasses(stem="ModernBert"),
    layers=EncoderLayers(path="layers.{}", first_differs=True, config_lists=("layer_types",)),
    attention=Attention(local_layers=True),
    heads=Heads(masked_lm=MaskedLmHead(dense="head.dense", activation="head.act", norm="head.norm", decoder="decoder")),
    optional_dropout=OptionalDropout("out_drop", "attention_dropout", 0.0),  # of the attention's output
    counts=Counts(
        embeddings=_embeddings,
        layer=_layer,
        rest=_rest,
        layer_flops=_layer_flops,
        dense_of_tokens=True,
        own_sizes=dict.fromkeys(("attention_bias", "mlp_bias", "norm_bias", "classifier_bias"), 0),
    ),
    fast_graph=False,
    student_families=("modernbert",),
    as_student=Student(inits=("copy", "prune", "random"), settings=_settings),
)
