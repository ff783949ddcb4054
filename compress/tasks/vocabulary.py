"""Small vocabularies for the embedded tasks, the same in every process."""

from __future__ import annotations

from functools import lru_cache

import tokenizers

from ..corpus.vocabulary import bert_tokenizer
from ..corpus.vocabulary import byte_level as trained_bytes
from ..corpus.vocabulary import wordpiece as trained
from .sources.builtin import BUILTIN_TASKS
from .synthetic import generate


def wordpiece(size: int) -> tokenizers.Tokenizer:
    """Return a lower-casing BERT tokenizer of at most `size` tokens, trained on the embedded tasks' training texts.

    Raises `CompressError` if `size` is less than the special tokens and letters need.
    """
    return bert_tokenizer(dict(_vocabulary(size)))


def byte_level(size: int) -> tokenizers.Tokenizer:
    """Return RoBERTa's byte-level BPE, otherwise like `wordpiece`. Raises `CompressError` if `size` is less than all bytes need."""
    return tokenizers.Tokenizer.from_str(_bytes(size))


@lru_cache(maxsize=4)
def _bytes(size: int) -> str:
    return trained_bytes(_synthetic_texts(), size).to_str()


@lru_cache(maxsize=4)
def _vocabulary(size: int) -> tuple[tuple[str, int], ...]:
    """Return (token, id) pairs in id order."""
    texts = _synthetic_texts()
    letters = sorted(letter for letter in set().union(*texts) if not letter.isspace())
    return tuple(trained(texts, letters, size).items())


@lru_cache(maxsize=1)
def _synthetic_texts() -> tuple[str, ...]:
    specs = [spec.synthetic for spec in BUILTIN_TASKS.values() if spec.synthetic is not None]
    examples = [example for spec in specs for example in generate(spec)["train"]]
    return tuple(str(text) for example in examples for text in example[:-1])
