"""Plain text for training without labels: files or a hub data set -> shards of token ids -> full batches."""

from __future__ import annotations

from .batches import TextBatches
from .cooccurrence import count_pairs, word_vectors
from .masking import MaskedBatches
from .pairs import PairBatches, sentence_ends
from .shards import TokenShards
from .sources import Source, corpus_fingerprint, corpus_sources, paragraphs
from .tokenizing import text_blocks, text_rules, tokenize_corpus
from .vocabulary import train_vocabulary

__all__ = [
    "MaskedBatches",
    "PairBatches",
    "Source",
    "TextBatches",
    "TokenShards",
    "corpus_fingerprint",
    "corpus_sources",
    "count_pairs",
    "paragraphs",
    "sentence_ends",
    "text_blocks",
    "text_rules",
    "tokenize_corpus",
    "train_vocabulary",
    "word_vectors",
]
