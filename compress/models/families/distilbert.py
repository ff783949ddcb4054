"""DistilBERT (Sanh et al. 2019, arXiv:1910.01108, §3): no segments, and no pooler.

A student's `pre_classifier` starts as its teacher's pooler, whose tanh becomes a ReLU.
"""

from __future__ import annotations

from typing import Any

from .fields import ACTIVATIONS, COMMON, FLAG, MOST_HEADS, MOST_LAYERS, MOST_WIDE, PROBABILITY, one_of, whole_number
from .parts import EncoderLayers, Heads, MaskedLmHead, Setting, Student, TokenizerClasses
from .record import Family

_KEPT = ("pad_token_id", "initializer_range", "id2label", "label2id", "problem_type")


def _settings(teacher: Setting) -> dict[str, Any]:
    dropout = teacher("hidden_dropout_prob")
    return {
        "dropout": dropout,
        "attention_dropout": teacher("attention_probs_dropout_prob"),
        "seq_classif_dropout": teacher("seq_classif_dropout", dropout),
        "activation": teacher("hidden_act"),
        **{name: teacher(name) for name in _KEPT},
    }


DISTILBERT = Family(
    name="distilbert",
    title="DistilBERT",
    fields={
        **COMMON,
        **{name: whole_number(1, MOST_WIDE) for name in ("dim", "hidden_size", "hidden_dim")},
        **{name: whole_number(1, MOST_LAYERS) for name in ("n_layers", "num_hidden_layers")},
        **{name: whole_number(1, MOST_HEADS) for name in ("n_heads", "num_attention_heads")},
        "activation": one_of(*ACTIVATIONS),
        "dropout": PROBABILITY,
        "attention_dropout": PROBABILITY,
        "qa_dropout": PROBABILITY,
        "seq_classif_dropout": PROBABILITY,
        "sinusoidal_pos_embds": FLAG,
    },
    own_names={
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_act": "activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "classifier_dropout": "seq_classif_dropout",
    },
    fixed={"layer_norm_eps": 1e-12},
    tokenizer=TokenizerClasses(stem="DistilBert", wordpiece_class="BertTokenizer"),
    layers=EncoderLayers(
        path="transformer.layer.{}",
        parts={
            "query": "attention.q_lin",
            "key": "attention.k_lin",
            "value": "attention.v_lin",
            "output": "attention.out_lin",
            "attention_norm": "sa_layer_norm",
            "up": "ffn.lin1",
            "down": "ffn.lin2",
            "norm": "output_layer_norm",
        },
    ),
    heads=Heads(
        classifier=(("pre_classifier", "relu"), ("classifier", None)),
        masked_lm=MaskedLmHead(
            dense="vocab_transform", activation="activation", norm="vocab_layer_norm", decoder="vocab_projector"
        ),
    ),
    student_families=("distilbert", "bert", "albert"),
    as_student=Student(inits=("copy", "prune", "random"), settings=_settings),
)
