"""Reduce vocabularies to the tokens that texts use: which tokens to keep, the reduced tokenizer, and how similarly it tokenizes texts."""

from __future__ import annotations

from .algorithms import algorithm_of
from .choice import fewest_tokens, kept_tokens, permanent_tokens
from .surgery import with_tokens
from .tokenization_rates import TextCounts, compare_splits, compare_texts, count_texts, count_tokens

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
