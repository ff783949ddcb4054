"""A random BERT that begins with what co-occurrences of words say, and attends to neighbours: what the first millions of tokens
of masked-LM training are otherwise spent on.

The last dimensions of the hidden states are kept for positions. Queries and keys of the first layer read positions above
all, so that a token attends to what is near it, and values are the words as they are: the first layer gives each place the
mean of its neighbourhood, and the head, which starts near the identity, says which words keep such company. The idea of
starting attention as what training tends to make of it is Trockman and Kolter's (2023, arXiv:2305.09828); this start is our
own. All other weights stay as they were drawn, beneath it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .dimensions import first_position, word_and_position_widths
from .masked_lm import decoder, near_identity

_POSITION_SCALE = 1.4  # positions beside words, a dimension
_WAVES = (0.9, 0.09)  # radians a token, the fastest and the slowest
_NEARNESS = 4.0  # nats that a token's own place is before a far one


@torch.no_grad()
def init_encoder(encoder: Any, vectors: np.ndarray) -> None:
    """Initialise a random encoder, a BERT's or a RoBERTa's, with `vectors` [word, as many as `word_and_position_widths` gives words].

    Words without a vector of their own, and special tokens, get a random one as long, which the caller's torch seed
    decides: were [MASK] small, LayerNorm would leave little but its position, and it would attend to itself.
    """
    config, embeddings = encoder.config, encoder.embeddings
    wide, places = word_and_position_widths(config.hidden_size, config.num_attention_heads)
    words = embeddings.word_embeddings.weight
    rows, known = torch.randn(len(words), wide), np.flatnonzero(vectors.any(1))
    if len(known) > 1:  # around their mean one alone would be nothing
        rows[known] = torch.from_numpy(vectors[known] - vectors[known].mean(0))
    rows = torch.nn.functional.normalize(rows)  # with a state of LayerNorm's, scores of words differ by about 1
    rows[config.pad_token_id] = 0.0  # a row that never trains
    words[:, :wide], words[:, wide:] = rows, 0.0
    first = first_position(config.model_type, config.pad_token_id)
    positions = embeddings.position_embeddings.weight
    positions[first:, :wide] = 0.0
    positions[first:, wide:] = _POSITION_SCALE * config.hidden_size**-0.5 * _waves(len(positions) - first, places)
    attention = encoder.encoder.layer[0].attention
    _attend_near(attention.self, config, places)
    attention.self.value.weight[:, wide:] = 0.0
    attention.self.value.weight += _diagonal(config.hidden_size, wide)
    attention.output.dense.weight += _diagonal(config.hidden_size, config.hidden_size)


@torch.no_grad()
def init_head(model: Any, counts: np.ndarray) -> None:
    """Initialise the head of a masked language model at its encoder's words, as frequent as `counts` [word] says."""
    near_identity(model)
    bias = decoder(model).bias
    often = torch.ones(len(bias), dtype=torch.float64)  # also of rows beyond the tokenizer's words
    often[: len(counts)] += torch.from_numpy(counts)
    bias.copy_((often / often.sum()).log())


def _diagonal(size: int, ones: int) -> Tensor:
    return torch.diag((torch.arange(size) < ones).float())


def _waves(count: int, places: int) -> Tensor:
    """[position, place]: sines and cosines, so that the product of two positions depends on their distance alone."""
    fastest, slowest = (math.log10(wave) for wave in _WAVES)
    angles = torch.arange(count)[:, None] * torch.logspace(fastest, slowest, places // 2)
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)


def _attend_near(attention: Any, config: Any, places: int) -> None:
    """Queries and keys of every head read the positions, with which a head's first dimensions are filled."""
    size = config.hidden_size // config.num_attention_heads
    gain = math.sqrt(_NEARNESS * math.sqrt(size) / places)
    for matrix in (attention.query.weight, attention.key.weight):
        for head in range(config.num_attention_heads):
            rows = slice(head * size, head * size + places)
            matrix[rows, config.hidden_size - places :] += gain * torch.eye(places)
