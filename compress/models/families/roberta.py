"""RoBERTa (Liu et al. 2019, arXiv:1907.11692), and families of its form: XLM-RoBERTa and CamemBERT.

BERT's layers; positions are counted from the row after the padding's; no segments; the classification head does not use the pooler.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from .bert import BERT, KEPT
from .record import Family, MaskedLmHead, Setting, Student

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
    own_names={},
    positions_after_padding=True,
    tokenizer="Roberta",
    layer=BERT.layer,
    layer_path=BERT.layer_path,
    pooler="pooler.dense",
    head=(("classifier.dense", "tanh"), ("classifier.out_proj", None)),
    pooled_head=(("base_model.pooler.dense", "tanh"), ("classifier", None)),
    masked_lm=MaskedLmHead(dense="lm_head.dense", norm="lm_head.layer_norm", decoder="lm_head.decoder"),
    students=("roberta", "bert", "albert"),
    student=Student(inits=("copy", "prune", "project", "random"), settings=_settings),
    random_config=_random_config,
    byte_level=True,
    cooccurrence_init=True,
)
XLM_ROBERTA = replace(
    ROBERTA,
    name="xlm-roberta",
    title="XLM-R",
    tokenizer="XLMRoberta",
    students=("xlm-roberta", "bert", "albert"),
    random_config=None,
    byte_level=False,
    cooccurrence_init=False,
)
CAMEMBERT = replace(
    XLM_ROBERTA, name="camembert", title="CamemBERT", tokenizer="Camembert", students=("camembert", "bert", "albert")
)
