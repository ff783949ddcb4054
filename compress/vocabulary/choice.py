"""Which tokens to keep: those that are always needed, and those in texts, most frequent first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import tokenizers

from ..tokenization.documents import parts_of, with_numbers
from ..tokenization.special import MASK, PAD, UNKNOWN, token_named
from .algorithms import algorithm_of


def permanent_tokens(tokenizer: tokenizers.Tokenizer, named: Iterable[int] = ()) -> set[int]:
    """Return the ids of special and added tokens, of those that the algorithm needs for any text, and of the `named` ones that exist.
    Raises `CompressError` for a tokenizer that cannot be reduced."""
    document, algorithm = parts_of(tokenizer), algorithm_of(tokenizer)
    permanent: set[int] = {token["id"] for token in document["added_tokens"]}

    def include(number: int) -> int:
        permanent.add(number)
        return number

    with_numbers(document["post_processor"], include)
    permanent.update(number for names in (PAD, MASK, UNKNOWN) if (number := token_named(tokenizer, names)) is not None)
    numbers, unknown = algorithm.numbers(document["model"]), algorithm.unknown(document["model"])
    permanent.update(numbers[token] for token in algorithm.permanent(document["model"]))
    permanent.update(() if unknown is None else [numbers[unknown]])
    return permanent | {number for number in named if tokenizer.id_to_token(number) is not None}


def kept_tokens(
    tokenizer: tokenizers.Tokenizer,
    permanent: set[int],
    counts: np.ndarray,
    others: np.ndarray | None = None,
    *,
    most: int | None = None,
    least: int = 1,
) -> np.ndarray:
    """Return ascending ids, int64: `permanent`; the task's tokens, with `counts` [vocabulary] above 0; and the tokens of plain text, with
    `others` of at least `least`; each with all that it is merged from.

    At most `most` in total: the most frequent of the task, then those of plain text, as far as each fits.
    """
    algorithm, model = algorithm_of(tokenizer), parts_of(tokenizer)["model"]
    numbers, parts = algorithm.numbers(model), algorithm.parts(model)
    kept = set(permanent)
    for number in (
        _by_frequency(counts, 1) if others is None else [*_by_frequency(counts, 1), *_by_frequency(others, least)]
    ):
        if number not in kept:
            pieces = (numbers[part] for part in parts(tokenizer.id_to_token(number) or ""))
            needed = {number, *pieces} - kept
            if most is None or len(kept) + len(needed) <= most:
                kept |= needed
    return np.array(sorted(kept), dtype=np.int64)


def fewest_tokens(
    tokenizer: tokenizers.Tokenizer, permanent: set[int], counts: np.ndarray, *, most: int | None = None
) -> int:
    """Return the minimum number of tokens that `kept_tokens` leaves for the same `permanent`, `counts` and `most`, whatever plain text is
    counted in addition, and if `counts` has further tokens.

    Without `most`, all of the task's tokens are kept. With it, one is left out only if it does not fit together with all that it is merged
    from.
    """
    algorithm, model = algorithm_of(tokenizer), parts_of(tokenizer)["model"]
    numbers, parts = algorithm.numbers(model), algorithm.parts(model)
    kept, largest = set(permanent), 1
    for number in _by_frequency(counts, 1):
        if number in permanent:
            continue
        needed = {number, *(numbers[part] for part in parts(tokenizer.id_to_token(number) or ""))}
        kept |= needed
        largest = max(largest, len(needed - permanent))
    return len(kept) if most is None else max(len(permanent), min(len(kept), most - largest + 1))


def _by_frequency(counts: np.ndarray, least: int) -> Iterator[int]:
    """Return ids by descending count; among equals the lower id first."""
    order = np.argsort(-counts, kind="stable")
    return (int(number) for number in order[counts[order] >= least])
