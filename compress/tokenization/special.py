"""Find the special tokens of a tokenizer by their function rather than their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tokenizers

from ..errors import CompressError

PAD = ("[PAD]", "<pad>")
MASK = ("[MASK]", "<mask>")
UNKNOWN = ("[UNK]", "<unk>")


@dataclass(frozen=True)
class SpecialIds:
    """Ids of special tokens under BERT's names, also for RoBERTa's `<s>`, `</s>`, `<pad>` and `<mask>`.

    `every`: all tokens marked special, including `[UNK]`; `pad` and `mask` are None if there is none.
    """

    cls: int
    sep: int
    pad: int | None
    mask: int | None
    every: tuple[int, ...]


def special_ids(tokenizer: tokenizers.Tokenizer) -> SpecialIds:
    """Return the special ids. `cls` and `sep` are what the tokenizer puts before and after a text; `pad` and `mask` have their usual names.

    So a BERT-style tokenizer gives [CLS] and [SEP], a RoBERTa-style one <s> and </s>, without a table of families. Raises `CompressError`
    if it puts anything else around a text.
    """
    own = plain_copy(tokenizer)
    text_ids, framed_ids = own.encode("a", add_special_tokens=False).ids, own.encode("a").ids
    if len(framed_ids) != len(text_ids) + 2 or framed_ids[1:-1] != text_ids:
        raise CompressError(
            f"the tokenizer turns {len(text_ids)} tokens of text into {len(framed_ids)}; expected one special token before "
            "and one after, as BERT's [CLS] and [SEP] or RoBERTa's <s> and </s>"
        )
    cls, sep, pad, mask = framed_ids[0], framed_ids[-1], token_named(own, PAD), token_named(own, MASK)
    marked = {number for number, token in own.get_added_tokens_decoder().items() if token.special}
    every = marked | {number for number in (cls, sep, pad, mask) if number is not None}
    return SpecialIds(cls, sep, pad, mask, tuple(sorted(every)))


def token_named(tokenizer: tokenizers.Tokenizer, names: Sequence[str]) -> int | None:
    """Return the id of the first of `names` that is marked special, else the first in the vocabulary: MPNet's has `[PAD]` and `[MASK]` as
    words besides its own `<pad>` and `<mask>`."""
    marked = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    numbers = [tokenizer.token_to_id(name) for name in sorted(names, key=lambda name: name not in marked)]
    return next((number for number in numbers if number is not None), None)


def plain_copy(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return a copy that neither truncates nor pads, and that reads `[SEP]` in a text as characters, not as the token."""
    own = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    own.no_truncation()
    own.no_padding()
    own.encode_special_tokens = True
    return own


def spelled_special(tokenizer: tokenizers.Tokenizer) -> frozenset[int]:
    """Return the special tokens, except the unknown one, that `plain` still finds in a text with their names: those of a Unigram tokenizer,
    whose vocabulary has them as pieces. With a large vocabulary this takes a second."""
    if type(tokenizer.model).__name__ != "Unigram":
        return frozenset()
    own = plain_copy(tokenizer)
    unknown = token_named(own, UNKNOWN)
    numbers: set[int] = set()
    for number in special_ids(tokenizer).every:
        name = own.id_to_token(number)
        if number != unknown and name and number in own.encode(f"a {name} {name}", add_special_tokens=False).ids:
            numbers.add(number)
    return frozenset(numbers)
