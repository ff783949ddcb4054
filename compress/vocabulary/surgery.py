"""Reduce a tokenizer to some of its tokens."""

from __future__ import annotations

import json

import numpy as np
import tokenizers

from ..errors import CompressError
from ..runtime.cutting import truncation_side
from ..tokenization.documents import parts_of, with_numbers
from ..tokenization.truncation import set_truncation_side
from .algorithms import algorithm_of


def with_tokens(tokenizer: tokenizers.Tokenizer, kept: np.ndarray) -> tokenizers.Tokenizer:
    """Return the tokenizer with only the tokens `kept`, ascending int64 ids; token kept[i] gets id i. It neither truncates nor pads, and
    carries the same side to truncate on.

    `kept` includes those that must be kept (`kept_tokens`). Raises `CompressError` for a tokenizer that cannot be reduced.
    """
    algorithm, document = algorithm_of(tokenizer), parts_of(tokenizer)
    new = {int(old): number for number, old in enumerate(kept)}
    own = sorted(algorithm.numbers(document["model"]).items(), key=lambda item: item[1])
    document["model"] = algorithm.cut(document["model"], [token for token, number in own if number in new])
    document["added_tokens"] = [{**token, "id": new[token["id"]]} for token in document["added_tokens"]]
    document["post_processor"] = with_numbers(document["post_processor"], new.__getitem__)
    reduced_tokenizer = tokenizers.Tokenizer.from_str(json.dumps(document))
    set_truncation_side(reduced_tokenizer, truncation_side(tokenizer))
    expected = {token: new[number] for token, number in tokenizer.get_vocab().items() if number in new}
    if reduced_tokenizer.get_vocab() != expected:
        raise CompressError(
            "added_tokens: expected numbers that follow those of the vocabulary, found some between them; have its library write "
            "the tokenizer.json again"
        )
    return reduced_tokenizer
