"""ALBERT (Lan et al. 2020, arXiv:1909.11942, §3.1): narrow embeddings, and layers that share their weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .bert import BERT, KEPT
from .fields import MOST_LAYERS, MOST_WIDE, PROBABILITY, whole_number
from .parts import Embeddings, EncoderLayers, Heads, MaskedLmHead, RandomWeights, Setting, Student, TokenizerClasses
from .record import Family

if TYPE_CHECKING:
    from ...tokenization.special import SpecialIds

_EMBEDDING = 128  # E, the same in all published sizes


def _settings(teacher: Setting) -> dict[str, Any]:
    head_dropout = teacher("classifier_dropout")
    return {
        "classifier_dropout_prob": teacher("hidden_dropout_prob") if head_dropout is None else head_dropout,
        "bos_token_id": teacher("bos_token_id", None),
        "eos_token_id": teacher("eos_token_id", None),
        **{name: teacher(name) for name in KEPT if name != "classifier_dropout"},
    }


def _random_config(config: dict[str, Any], special: SpecialIds) -> dict[str, Any]:
    """Use one block for all layers, and GELU by tanh."""
    return config | {
        "embedding_size": config.get("embedding_size", _EMBEDDING),
        "num_hidden_groups": 1,
        "inner_group_num": 1,
        "hidden_act": "gelu_new",
        "classifier_dropout_prob": config["hidden_dropout_prob"],
        "bos_token_id": special.cls,
        "eos_token_id": special.sep,
    }


ALBERT = Family(
    name="albert",
    title="ALBERT",
    fields={
        **BERT.fields,
        "embedding_size": whole_number(1, MOST_WIDE),
        "num_hidden_groups": whole_number(1, MOST_LAYERS),
        "inner_group_num": whole_number(1, MOST_LAYERS),
        "classifier_dropout_prob": PROBABILITY,
    },
    own_names={"classifier_dropout": "classifier_dropout_prob"},
    tokenizer=TokenizerClasses(stem="Albert", wordpiece_class="BertTokenizer"),
    embeddings=Embeddings(projection="encoder.embedding_hidden_mapping_in", always_projected=True),
    layers=EncoderLayers(
        path="encoder.albert_layer_groups.{}.albert_layers.0",
        parts={
            "query": "attention.query",
            "key": "attention.key",
            "value": "attention.value",
            "output": "attention.dense",
            "attention_norm": "attention.LayerNorm",
            "up": "ffn",
            "down": "ffn_output",
            "norm": "full_layer_layer_norm",
        },
    ),
    heads=Heads(
        pooler="pooler",
        classifier=(("base_model.pooler", "tanh"), ("classifier", None)),
        masked_lm=MaskedLmHead(
            dense="predictions.dense",
            activation="predictions.activation",
            norm="predictions.LayerNorm",
            decoder="predictions.decoder",
        ),
    ),
    student_families=("albert", "bert"),
    as_student=Student(inits=("copy", "convert", "random"), settings=_settings),
    random=RandomWeights(config=_random_config),
)
