"""Initialise a random BERT from word co-occurrences, with attention to neighbours. Masked-LM training otherwise spends its first millions
of tokens on this.

The last dimensions of the hidden states are reserved for positions. Queries and keys of the first layer read mostly positions, so that a
token attends to nearby ones, and values copy the word dimensions: the first layer gives each position the mean of its neighbourhood, and
the head, which starts near the identity, predicts words that occur in such a neighbourhood. Starting attention near what training tends to
make of it is an idea of Trockman and Kolter (2023, arXiv:2305.09828); this initialisation is our own. All other weights keep their random
values.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .dimensions import first_position, word_and_position_widths
from .masked_lm import decoder, near_identity

_POSITION_SCALE = 1.4  # size of a position dimension relative to a word dimension
_WAVES = (0.9, 0.09)  # radians per token, fastest and slowest
_NEARNESS = 4.0  # nats by which a token's own position outscores a far one


@torch.no_grad()
def init_encoder(encoder: Any, vectors: np.ndarray) -> None:
    """Initialise a random BERT or RoBERTa encoder from `vectors` [word, word width], the width from `word_and_position_widths`.

    Words without a vector, and special tokens, get a random one of the same length, drawn from the caller's torch seed. If [MASK] were
    small, LayerNorm would leave little but its position, and it would attend to itself.
    """
    config, embeddings = encoder.config, encoder.embeddings
    word_width, position_width = word_and_position_widths(config.hidden_size, config.num_attention_heads)
    # Word embeddings: vectors of length 1 in the word dimensions.
    words = embeddings.word_embeddings.weight
    rows, known = torch.randn(len(words), word_width), np.flatnonzero(vectors.any(1))
    if len(known) > 1:  # a single vector minus its mean would be 0
        rows[known] = torch.from_numpy(vectors[known] - vectors[known].mean(0))
    rows = torch.nn.functional.normalize(rows)  # scores against LayerNorm outputs then differ by about 1
    if config.pad_token_id is not None:
        rows[config.pad_token_id] = 0.0  # never trained
    words[:, :word_width], words[:, word_width:] = rows, 0.0
    # Position embeddings: sinusoids in the position dimensions.
    first = first_position(config.model_type, config.pad_token_id)
    positions = embeddings.position_embeddings.weight
    positions[first:, :word_width] = 0.0
    positions[first:, word_width:] = (
        _POSITION_SCALE * config.hidden_size**-0.5 * _sinusoids(len(positions) - first, position_width)
    )
    # First layer: attend to near positions, and add the mean of their words to the states.
    attention = encoder.encoder.layer[0].attention
    _attend_near(attention.self, config, position_width)
    attention.self.value.weight[:, word_width:] = 0.0
    attention.self.value.weight += _diagonal(config.hidden_size, word_width)
    attention.output.dense.weight += _diagonal(config.hidden_size, config.hidden_size)


@torch.no_grad()
def init_head(model: Any, counts: np.ndarray) -> None:
    """Initialise a masked-LM head: near the identity, with the log frequencies of words in `counts` [word] as bias."""
    near_identity(model)
    bias = decoder(model).bias
    often = torch.ones(len(bias), dtype=torch.float64)  # 1 also for rows beyond the tokenizer's words
    often[: len(counts)] += torch.from_numpy(counts)
    bias.copy_((often / often.sum()).log())


def _diagonal(size: int, ones: int) -> Tensor:
    return torch.diag((torch.arange(size) < ones).float())


def _sinusoids(count: int, position_width: int) -> Tensor:
    """Return [position, dimension] sines and cosines, for which the dot product of two positions depends on their distance alone."""
    fastest, slowest = (math.log10(wave) for wave in _WAVES)
    angles = torch.arange(count)[:, None] * torch.logspace(fastest, slowest, position_width // 2)
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)


def _attend_near(attention: Any, config: Any, position_width: int) -> None:
    """Make queries and keys of every head read the positions, into each head's first dimensions."""
    size = config.hidden_size // config.num_attention_heads
    gain = math.sqrt(_NEARNESS * math.sqrt(size) / position_width)
    for matrix in (attention.query.weight, attention.key.weight):
        for head in range(config.num_attention_heads):
            rows = slice(head * size, head * size + position_width)
            matrix[rows, config.hidden_size - position_width :] += gain * torch.eye(position_width)
