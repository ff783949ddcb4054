"""BERT (Devlin et al. 2019, arXiv:1810.04805); as a student TinyBERT (Jiao et al. 2020, arXiv:1909.10351, §3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .fields import (
    ACTIVATIONS,
    COMMON,
    HEAD_DROPOUT,
    MOST_HEADS,
    MOST_LAYERS,
    MOST_WIDE,
    PROBABILITY,
    number,
    one_of,
    whole_number,
)
from .parts import EncoderLayers, Heads, MaskedLmHead, RandomWeights, Setting, Student, TokenizerClasses
from .record import Family

if TYPE_CHECKING:
    from ...tokenization.special import SpecialIds

KEPT = (  # settings that students take from their teacher
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


def _settings(teacher: Setting) -> dict[str, Any]:
    return {name: teacher(name) for name in KEPT}


def _random_config(config: dict[str, Any], special: SpecialIds) -> dict[str, Any]:
    return config


BERT = Family(
    name="bert",
    title="BERT",
    fields={
        **COMMON,
        "hidden_size": whole_number(1, MOST_WIDE),
        "num_hidden_layers": whole_number(1, MOST_LAYERS),
        "num_attention_heads": whole_number(1, MOST_HEADS),
        "intermediate_size": whole_number(1, MOST_WIDE),
        "hidden_act": one_of(*ACTIVATIONS),
        "hidden_dropout_prob": PROBABILITY,
        "attention_probs_dropout_prob": PROBABILITY,
        "type_vocab_size": whole_number(1, 1024),
        "layer_norm_eps": number(0, 1),
        "classifier_dropout": HEAD_DROPOUT,
    },
    tokenizer=TokenizerClasses(stem="Bert", wordpiece_class="BertTokenizer"),
    layers=EncoderLayers(
        path="encoder.layer.{}",
        parts={
            "query": "attention.self.query",
            "key": "attention.self.key",
            "value": "attention.self.value",
            "output": "attention.output.dense",
            "attention_norm": "attention.output.LayerNorm",
            "up": "intermediate.dense",
            "down": "output.dense",
            "norm": "output.LayerNorm",
        },
    ),
    heads=Heads(
        pooler="pooler.dense",
        classifier=(("base_model.pooler.dense", "tanh"), ("classifier", None)),
        masked_lm=MaskedLmHead(
            dense="cls.predictions.transform.dense",
            activation="cls.predictions.transform.transform_act_fn",
            norm="cls.predictions.transform.LayerNorm",
            decoder="cls.predictions.decoder",
        ),
    ),
    student_families=("distilbert", "bert", "albert"),
    as_student=Student(inits=("copy", "prune", "project", "random"), settings=_settings),
    random=RandomWeights(
        config=_random_config,
        growth={
            "word_embeddings.weight": "-h",
            "predictions.decoder.weight": "-h",  # tied to the word table
            "position_embeddings.weight": "-h",
            "token_type_embeddings.weight": "-h",
            "self.query": "ah",
            "self.key": "ah",
            "self.value": "ah",
            "attention.output.dense": "ha",
            "intermediate.dense": "fh",
            "output.dense": "hf",
            "pooler.dense": "hh",
            "transform.dense": "hh",
            "LayerNorm": "h",
            "predictions.bias": "-",
            "predictions.decoder.bias": "-",
        },
        cooccurrence_init=True,
    ),
)
