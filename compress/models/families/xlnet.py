"""XLNet (Yang et al. 2019, arXiv:1906.08237): relative positions and segments, a classifier on the last token.

It can teach pre-trained students and be quantized to int8; it has no students of its own. Its language model predicts tokens in a random
order, which no stage here does.
"""

from __future__ import annotations

from ...runtime.passages import THRESHOLD
from .bert import BERT
from .counts import Counts, Sizes
from .fields import (
    ACTIVATIONS,
    MOST_HEADS,
    MOST_LAYERS,
    MOST_POSITIONS,
    MOST_WIDE,
    PROBABILITY,
    one_of,
    only,
    whole_number,
)
from .parts import Attention, Embeddings, EncoderLayers, OptionalDropout, TokenizerClasses
from .record import Family

_POSITIONS = 512  # as in pre-training; attention itself has no limit
_AS_IN_BERT = (
    *("architectures", "tokenizer_class", "vocab_size", "pad_token_id", "bos_token_id", "eos_token_id"),
    *("initializer_range", "tie_word_embeddings", "id2label", "num_labels", "problem_type", "layer_norm_eps"),
    *("dtype", "torch_dtype", "is_decoder", "add_cross_attention", "is_encoder_decoder", "pruned_heads"),
    *("quantization_config", "sentence_pooling", THRESHOLD),
)


def _embeddings(sizes: Sizes) -> int:
    """Return parameters of the word table, and of the vector for a word to predict."""
    return (sizes.vocabulary + 1) * sizes.hidden


def _layer(sizes: Sizes) -> int:
    """Return parameters of the matrices for queries, keys, values, positions and output, three query biases, two segment rows and a
    LayerNorm; and of the feed-forward part with another LayerNorm."""
    h, f = sizes.hidden, sizes.intermediate
    return 5 * h * h + 5 * h + 2 * h + (h * f + f) + (f * h + h) + 2 * h


def _layer_flops(sizes: Sizes, length: float) -> float:
    """Return FLOPs of a layer: per token, six matrices, and that of positions for twice as many distances; per pair of tokens, scores by
    content, by distance (half of which are dropped) and by segment, and weighted sums of values."""
    h, f = sizes.hidden, sizes.intermediate
    matrices = 2 * length * (4 * h * h + 2 * h * f) + 2 * (2 * length) * h * h
    segments = 2 * length * 2 * h + 2 * length * length * 2 * sizes.heads
    return matrices + 2 * length * length * 4 * h + segments


XLNET = Family(
    name="xlnet",
    title="XLNet",
    fields={
        **{name: BERT.fields[name] for name in _AS_IN_BERT},
        "d_model": whole_number(1, MOST_WIDE),
        "n_layer": whole_number(1, MOST_LAYERS),
        "n_head": whole_number(1, MOST_HEADS),
        "d_inner": whole_number(1, MOST_WIDE),
        "d_head": whole_number(1, MOST_WIDE),
        "ff_activation": one_of(*ACTIVATIONS),
        "dropout": PROBABILITY,
        "summary_last_dropout": PROBABILITY,
        "clamp_len": whole_number(-1, MOST_POSITIONS),
        "attn_type": only("bi", "bi: one that reads in one direction is not supported", kept=True),
        "bi_data": only(False, "false: batches that are half reversed are not supported", kept=True),
        "summary_type": only("last", "last: a classifier on another token is not supported", kept=True),
        "summary_use_proj": only(True, "true: a classifier without a projection is not supported", kept=True),
        "summary_activation": only("tanh", "tanh: another is not supported", kept=True),
    },
    own_names={
        "hidden_size": "d_model",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "intermediate_size": "d_inner",
        "hidden_act": "ff_activation",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "dropout",
        "classifier_dropout": "summary_last_dropout",
    },
    fixed={"max_position_embeddings": _POSITIONS},
    tokenizer=TokenizerClasses(stem="XLNet", pads_left=True),
    embeddings=Embeddings(relative_segments=True),
    layers=EncoderLayers(path="layer.{}", time_major=True),
    attention=Attention(readable=False, separates_documents=False),
    optional_dropout=OptionalDropout("last_dropout", "summary_last_dropout", 0.1),  # of the classifier's input
    counts=Counts(embeddings=_embeddings, layer=_layer, layer_flops=_layer_flops),
    fast_graph=False,
)
