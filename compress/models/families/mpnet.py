"""MPNet (Song et al. 2020, arXiv:2004.09297): BERT's layers, with a relative position bias in attention.

All layers share one bias table [bucket, head]. No segments; positions are counted from the row after the padding's, whose number
transformers fixes; the classification head does not use the pooler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from .bert import BERT, KEPT
from .fields import only
from .parts import (
    RELATIVE_BUCKETS,
    Attention,
    Embeddings,
    EncoderLayers,
    Heads,
    MaskedLmHead,
    RandomWeights,
    Setting,
    Student,
    TokenizerClasses,
)
from .record import Family

if TYPE_CHECKING:
    from ...tokenization.special import SpecialIds

_PADDING = 1  # transformers' constant, whatever config.json says
_ABSENT = ("type_vocab_size", "classifier_dropout")


def _settings(teacher: Setting) -> dict[str, Any]:
    kept = (*(name for name in KEPT if name not in _ABSENT), "bos_token_id", "eos_token_id")
    return {name: teacher(name) for name in kept}


def _random_config(config: dict[str, Any], special: SpecialIds) -> dict[str, Any]:
    if special.pad != _PADDING:
        padding = "it has none" if special.pad is None else f"its own is number {special.pad}"
        raise CompressError(
            f"random.tokenizer: an mpnet needs a padding token that is number {_PADDING}, and {padding}; "
            "`compress vocab --kind bpe` makes one with it"
        )
    return {name: value for name, value in config.items() if name not in _ABSENT} | {
        "max_position_embeddings": config["max_position_embeddings"] + _PADDING + 1,
        "layer_norm_eps": 1e-5,
        "bos_token_id": special.cls,
        "eos_token_id": special.sep,
    }


MPNET = Family(
    name="mpnet",
    title="MPNet",
    fields={
        **{name: field for name, field in BERT.fields.items() if name not in _ABSENT},
        "pad_token_id": only(_PADDING, f"{_PADDING}: an MPNet's positions are counted from there", kept=True),
        "relative_attention_num_buckets": only(
            RELATIVE_BUCKETS, f"{RELATIVE_BUCKETS}: no other number is supported", kept=True
        ),
    },
    fixed={"classifier_dropout": None},
    tokenizer=TokenizerClasses(stem="MPNet"),
    embeddings=Embeddings(positions_after_padding=True),
    layers=EncoderLayers(
        path="encoder.layer.{}",
        parts={
            "query": "attention.attn.q",
            "key": "attention.attn.k",
            "value": "attention.attn.v",
            "output": "attention.attn.o",
            "attention_norm": "attention.LayerNorm",
            "up": "intermediate.dense",
            "down": "output.dense",
            "norm": "output.LayerNorm",
        },
    ),
    attention=Attention(own_module="attention.attn", relative_bias="encoder.relative_attention_bias"),
    heads=Heads(
        pooler="pooler.dense",
        classifier=(("classifier.dense", "tanh"), ("classifier.out_proj", None)),
        multiple_choice=(("base_model.pooler.dense", "tanh"), ("classifier", None)),
        masked_lm=MaskedLmHead(dense="lm_head.dense", norm="lm_head.layer_norm", decoder="lm_head.decoder"),
    ),
    student_families=("mpnet", "bert", "albert"),
    as_student=Student(inits=("copy", "prune", "project", "random"), settings=_settings),
    random=RandomWeights(config=_random_config, byte_level=True),
)
