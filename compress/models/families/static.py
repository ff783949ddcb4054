"""Static students: token vectors and one hidden layer (Arora et al. 2017, SIF; Tulkens and van Dongen 2024, Model2Vec).

The layer reads the mean over a text or, to label tokens, each token's vector and its neighbours'. A sentence encoder is the mean alone.
There are no encoder layers and no positions: word order beyond a few neighbours is lost, and a text costs one look-up per token and one
small layer. transformers has no such model; ours is registered with its Auto classes when one is loaded.
"""

from __future__ import annotations

from typing import Any

from .counts import Counts, Sizes
from .fields import COMMON, MOST_TOKENS, MOST_WIDE, PROBABILITY, Field, whole_number
from .parts import Attention, EncoderLayers, Heads, Setting, Student, TokenizerClasses
from .record import Family

_MOST_SPECIAL = 64
MOST_WINDOW = 8  # tokens on each side
_KEPT = ("initializer_range", "hidden_dropout_prob", "pad_token_id", "id2label", "label2id", "problem_type")


def _are_tokens(value: Any) -> bool:
    """Whether `value` is a list of token numbers."""
    return (
        isinstance(value, list)
        and len(value) <= _MOST_SPECIAL
        and all(isinstance(token, int) and not isinstance(token, bool) and 0 <= token < MOST_TOKENS for token in value)
    )


def _register() -> None:
    from ..static_model import register

    register()


def _settings(teacher: Setting) -> dict[str, Any]:
    return {name: teacher(name) for name in _KEPT}


def _features(sizes: Sizes) -> int:
    """Return the width of the hidden layer's input: a mean; for pairs, two means, their difference and product; for tokens, the vectors of
    the token and its neighbours."""
    if sizes.per_token:
        return sizes.hidden * (2 * sizes.own["window"] + 1)
    return sizes.hidden * (4 if sizes.own["texts"] == 2 else 1)


def _table(sizes: Sizes) -> int:
    return sizes.vocabulary * sizes.hidden


def _no_layer(sizes: Sizes) -> int:
    return 0


def _rest(sizes: Sizes) -> int:
    """Return parameters of the hidden layer and the classifier, with biases."""
    return (_features(sizes) + 1) * sizes.intermediate + (sizes.intermediate + 1) * sizes.classes


def _no_layer_flops(sizes: Sizes, length: float) -> float:
    return 0.0


def _rest_flops(sizes: Sizes, length: float) -> float:
    """Return FLOPs of a weighted sum of vectors per text, the hidden layer and the classifier. A sentence encoder has the sum alone, a
    tagger both layers for each token."""
    layers = 2 * sizes.intermediate * (_features(sizes) + sizes.classes)
    if sizes.per_token:
        return length * layers
    means = 2 * length * sizes.hidden * sizes.own["texts"]
    return means + layers if sizes.classes else means


STATIC = Family(
    name="static",
    title="Static",
    fields={
        **COMMON,
        "hidden_size": whole_number(1, MOST_WIDE),
        "intermediate_size": whole_number(1, MOST_WIDE),
        "hidden_dropout_prob": PROBABILITY,
        "texts": whole_number(1, 2),
        "window": whole_number(0, MOST_WINDOW),
        "special_token_ids": Field(_are_tokens, f"a list of at most {_MOST_SPECIAL} token numbers"),
        "separator_token_id": whole_number(0, MOST_TOKENS - 1, nullable=True),
    },
    fixed={"num_hidden_layers": 0, "num_attention_heads": 1, "hidden_act": "relu"},
    tokenizer=TokenizerClasses(stem="Bert", wordpiece_class="BertTokenizer"),
    layers=EncoderLayers(path=""),
    attention=Attention(readable=False, separates_documents=False),
    heads=Heads(classifier=(("pre_classifier", "relu"), ("classifier", None))),
    counts=Counts(
        embeddings=_table,
        layer=_no_layer,
        rest=_rest,
        layer_flops=_no_layer_flops,
        own_rest_flops=_rest_flops,
        own_sizes={"texts": 1, "window": 0},
    ),
    register_classes=_register,
    as_student=Student(inits=("static", "random"), settings=_settings),
)
