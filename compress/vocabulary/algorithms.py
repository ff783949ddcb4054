"""Tokenization algorithms in tokenizer.json: the tokens that must be kept, those that a token is merged from, and the reduced model.

A text keeps its tokens if all of these are kept. It gets no new unknown tokens, because its characters are kept, too. If a WordPiece
vocabulary lacks a character of its own longer tokens, an unknown word may become known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tokenizers

from ..errors import CompressError
from ..tokenization.documents import parts_of
from . import bpe

Model = Mapping[str, Any]  # the part `model` of a tokenizer.json
_BYTE = re.compile("<0x[0-9A-F]{2}>")


@dataclass(frozen=True)
class Algorithm:
    """`numbers`: token -> number. `unknown`: the unknown token; None if there is none. `permanent`: tokens kept for any text. `parts`: a
    function that returns the tokens that one is merged from. `cut`: the model with only the given tokens, in their order."""

    numbers: Callable[[Model], dict[str, int]]
    unknown: Callable[[Model], str | None]
    permanent: Callable[[Model], set[str]]
    parts: Callable[[Model], Callable[[str], Iterable[str]]]
    cut: Callable[[Model, list[str]], dict[str, Any]]


def algorithm_of(tokenizer: tokenizers.Tokenizer) -> Algorithm:
    """Return the algorithm. Raises `CompressError` for a tokenizer that cannot be reduced, naming the field of its tokenizer.json."""
    model = parts_of(tokenizer)["model"]
    if model["type"] not in ALGORITHMS:
        raise CompressError(f"model.type: expected {', '.join(ALGORITHMS)}; found {model['type']}")
    for field in ("end_of_word_suffix", "continuing_subword_prefix") if model["type"] == "BPE" else ():
        if model.get(field):
            raise CompressError(f"model.{field}: expected none, as in byte-level BPE; found {model[field]!r}")
    if model.get("dropout"):
        raise CompressError(
            f"model.dropout: expected none; found {model['dropout']}: it cuts a text otherwise each time"
        )
    return ALGORITHMS[model["type"]]


def _no_parts(model: Model) -> Callable[[str], Iterable[str]]:
    return lambda token: ()


def _vocabulary(model: Model) -> dict[str, int]:
    return model["vocab"]


def _unknown_token(model: Model) -> str | None:
    """Return the unknown token; also None if the vocabulary does not have it, as the algorithm searches only there."""
    token = model.get("unk_token")
    return token if token in model["vocab"] else None


def _renumber_tokens(model: Model, kept: list[str]) -> dict[str, Any]:
    return {**model, "vocab": {token: number for number, token in enumerate(kept)}}


def _wordpiece_permanent(model: Model) -> set[str]:
    """Return single characters at the start of words and inside; and tokens with a character that is not a token by itself, which no
    smaller pieces could replace."""
    prefix, vocabulary = model["continuing_subword_prefix"], model["vocab"]

    def characters(token: str) -> list[str]:
        inside = token.startswith(prefix) and token != prefix
        first, *rest = token.removeprefix(prefix) if inside else token
        return [prefix + first if inside else first, *(prefix + character for character in rest)]

    return {
        token
        for token in filter(None, vocabulary)
        if len(own := characters(token)) == 1 or any(character not in vocabulary for character in own)
    }


def _bpe_permanent(model: Model) -> set[str]:
    """Return single characters; byte-level BPE has one for each byte."""
    return {token for token in model["vocab"] if len(token) == 1 or _is_byte(model, token)}


def _unigram_numbers(model: Model) -> dict[str, int]:
    return {token: number for number, (token, _) in enumerate(model["vocab"])}


def _unigram_unknown(model: Model) -> str | None:
    return None if model.get("unk_id") is None else model["vocab"][model["unk_id"]][0]


def _unigram_permanent(model: Model) -> set[str]:
    """Return the same as for WordPiece, and the piece with the lowest score, from which that of unknown characters is computed."""
    tokens = _unigram_numbers(model)
    lowest = int(np.argmin([score for _, score in model["vocab"]]))
    alone = {token for token in tokens if len(token) == 1 or _is_byte(model, token)}
    return alone | {model["vocab"][lowest][0]} | {token for token in tokens if not alone.issuperset(token)}


def _unigram_cut(model: Model, kept: list[str]) -> dict[str, Any]:
    scores, unknown = dict(model["vocab"]), _unigram_unknown(model)
    number = None if unknown is None else kept.index(unknown)
    return {**model, "vocab": [[token, scores[token]] for token in kept], "unk_id": number}


def _is_byte(model: Model, token: str) -> bool:
    """Whether the token represents one byte of a character outside the vocabulary."""
    return bool(model.get("byte_fallback")) and _BYTE.fullmatch(token) is not None


# By name in tokenizer.json.
ALGORITHMS = {
    "WordPiece": Algorithm(_vocabulary, _unknown_token, _wordpiece_permanent, _no_parts, _renumber_tokens),
    "BPE": Algorithm(_vocabulary, _unknown_token, _bpe_permanent, bpe.merge_parts, bpe.cut_merges),
    "Unigram": Algorithm(_unigram_numbers, _unigram_unknown, _unigram_permanent, _no_parts, _unigram_cut),
}
