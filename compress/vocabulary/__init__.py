"""Vocabularies cut down to the tokens that texts use: which stay, the tokenizer with these alone, and how alike it cuts texts."""

from __future__ import annotations

from .algorithms import algorithm_of
from .choice import fewest_tokens, kept_tokens, permanent_tokens
from .comparing import TextCounts, compare_splits, compare_texts, count_texts, count_tokens
from .surgery import with_tokens

__all__ = [
    "TextCounts",
    "algorithm_of",
    "compare_splits",
    "compare_texts",
    "count_texts",
    "count_tokens",
    "fewest_tokens",
    "kept_tokens",
    "permanent_tokens",
    "with_tokens",
]
