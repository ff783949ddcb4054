"""DeBERTa-v3 (He et al. 2021, arXiv:2111.09543), and v2 models of the same form: attention that separates content and position.

Scores are the sum of content to content, content to position and position to content. Positions are a table of distance buckets, which each
layer projects to keys and queries, with its content matrices or with separate ones (He et al. 2020, arXiv:2006.03654, §3.1). Students copy
whole layers. No stage here uses its masked-LM heads: v3 is trained on another task, replaced token detection, and v2's head comes in two
forms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .bert import BERT, KEPT
from .counts import Counts, Sizes, bert_layer, bert_layer_flops, bert_rest
from .fields import ACTIVATIONS, FLAG, HEAD_DROPOUT, MOST_POSITIONS, PROBABILITY, Field, one_of, only, whole_number
from .parts import Attention, EncoderLayers, Setting, Student, TokenizerClasses
from .record import Family

_BOTH = ["c2p", "p2c"]
_BUCKETS, _FARTHEST = "position_buckets", "max_relative_positions"
# Settings that BERT lacks, with transformers' defaults.
_OWN = {_BUCKETS: -1, _FARTHEST: -1, "share_att_key": False, "position_biased_input": True}
_OF_FORM = ("relative_attention", "pos_att_type", "norm_rel_ebd")
_POOLER = {"pooler_dropout": 0.0, "pooler_hidden_act": "gelu", "cls_dropout": None}


def _are_both(value: Any) -> bool:
    parts = value.lower().split("|") if isinstance(value, str) else value
    return isinstance(parts, list) and sorted(map(str, parts)) == _BOTH


def _relative_rows(sizes: Sizes) -> int:
    """Return the rows of the relative position table."""
    own = sizes.own
    return 2 * next(rows for rows in (own[_BUCKETS], own[_FARTHEST], sizes.positions) if rows > 0)


def _embeddings(sizes: Sizes) -> int:
    positions = sizes.positions if sizes.own["position_biased_input"] else 0
    return (sizes.vocabulary + positions + sizes.token_types + 2) * sizes.hidden


def _layer(sizes: Sizes) -> int:
    own = 0 if sizes.own["share_att_key"] else 2 * (sizes.hidden + 1) * sizes.hidden
    return bert_layer(sizes) + own


def _rest(sizes: Sizes) -> int:
    return _position_table(sizes) + bert_rest(sizes)


def _position_table(sizes: Sizes) -> int:
    """Return parameters of the relative position table and its LayerNorm."""
    return (_relative_rows(sizes) + 2) * sizes.hidden


def _layer_flops(sizes: Sizes, length: float) -> float:
    """Return FLOPs of a layer: BERT's, two projections of the position table, and two products of each token with each of its rows."""
    rows, h = _relative_rows(sizes), sizes.hidden
    return bert_layer_flops(sizes, length) + 2 * 2 * rows * h * h + 2 * 2 * length * rows * h


def _settings(teacher: Setting) -> dict[str, Any]:
    kept = (*(name for name in KEPT if name != "classifier_dropout"), *_OF_FORM)
    return {name: teacher(name) for name in kept} | {
        name: teacher(name, value) for name, value in (_OWN | _POOLER).items()
    }


_V3 = "of DeBERTa-v3 and -v2; other forms of its attention are not supported"

DEBERTA = Family(
    name="deberta-v2",
    title="DeBERTa-v3",
    fields={
        **{name: field for name, field in BERT.fields.items() if name != "classifier_dropout"},
        "type_vocab_size": replace(whole_number(0, 1024), required=True),
        "relative_attention": only(True, f"true: that {_V3}", kept=True, required=True),
        "pos_att_type": Field(_are_both, f"p2c|c2p: that {_V3}", required=True),
        "norm_rel_ebd": only("layer_norm", f"layer_norm: that {_V3}", kept=True, required=True),
        "conv_kernel_size": only(0, "none: the convolution of DeBERTa-v2-xlarge and -xxlarge is not supported"),
        _BUCKETS: whole_number(-1, MOST_POSITIONS),
        _FARTHEST: whole_number(-1, MOST_POSITIONS),
        "share_att_key": FLAG,
        "position_biased_input": FLAG,
        "pooler_dropout": PROBABILITY,
        "pooler_hidden_act": one_of(*ACTIVATIONS),
        "cls_dropout": HEAD_DROPOUT,
    },
    own_names={"classifier_dropout": "cls_dropout"},
    tokenizer=TokenizerClasses(stem="DebertaV2"),
    layers=EncoderLayers(path="encoder.layer.{}"),
    attention=Attention(readable=False, separates_documents=False),
    counts=Counts(
        embeddings=_embeddings,
        layer=_layer,
        rest=_rest,
        bare_rest=_position_table,
        layer_flops=_layer_flops,
        own_sizes={name: int(value) for name, value in _OWN.items()},
    ),
    fast_graph=False,
    student_families=("deberta-v2",),
    as_student=Student(inits=("copy", "prune", "random"), settings=_settings),
)
