"""RoBERTa (Liu et al. 2019, arXiv:1907.11692), and families of its form: XLM-RoBERTa and CamemBERT.

BERT's layers; positions are counted from the row after the padding's; no segments; the classification head does not use the pooler.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from .bert import BERT, KEPT
from .parts import Embeddings, Heads, MaskedLmHead, RandomWeights, Setting, Student, TokenizerClasses
from .record import Family

if TYPE_CHECKING:
    from ...tokenization.special import SpecialIds


def _settings(teacher: Setting) -> dict[str, Any]:
    return {name: teacher(name) for name in (*KEPT, "bos_token_id", "eos_token_id")}


def _random_config(config: dict[str, Any], special: SpecialIds) -> dict[str, Any]:
    if special.pad is None:
        raise CompressError("random.tokenizer: a roberta needs a padding token, <pad> or [PAD], which this one lacks")
    return config | {
        "max_position_embeddings": config["max_position_embeddings"] + special.pad + 1,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "bos_token_id": special.cls,
        "eos_token_id": special.sep,
    }


ROBERTA = Family(
    name="roberta",
    title="RoBERTa",
    fields=BERT.fields,
    tokenizer=TokenizerClasses(stem="Roberta"),
    embeddings=Embeddings(positions_after_padding=True),
    layers=BERT.layers,
    heads=Heads(
        pooler="pooler.dense",
        classifier=(("classifier.dense", "tanh"), ("classifier.out_proj", None)),
        multiple_choice=(("base_model.pooler.dense", "tanh"), ("classifier", None)),
        masked_lm=MaskedLmHead(dense="lm_head.dense", norm="lm_head.layer_norm", decoder="lm_head.decoder"),
    ),
    student_families=("roberta", "bert", "albert"),
    as_student=Student(inits=("copy", "prune", "project", "random"), settings=_settings),
    random=RandomWeights(config=_random_config, byte_level=True, cooccurrence_init=True),
)
XLM_ROBERTA = replace(
    ROBERTA,
    name="xlm-roberta",
    title="XLM-R",
    tokenizer=TokenizerClasses(stem="XLMRoberta"),
    student_families=("xlm-roberta", "bert", "albert"),
    random=RandomWeights(),
)
CAMEMBERT = replace(
    XLM_ROBERTA,
    name="camembert",
    title="CamemBERT",
    tokenizer=TokenizerClasses(stem="Camembert"),
    student_families=("camembert", "bert", "albert"),
)
