"""The special tokens of a tokenizer, by what it does rather than by what it calls them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers

from ..errors import CompressError

PAD = ("[PAD]", "<pad>")
MASK = ("[MASK]", "<mask>")
UNKNOWN = ("[UNK]", "<unk>")


@dataclass(frozen=True)
class SpecialIds:
    """Ids of special tokens under BERT's names: RoBERTa's `<s>`, `</s>`, `<pad>` and `<mask>` stand here too.

    `every` holds all tokens that are marked special, also `[UNK]`; `pad` and `mask` are None where there is none.
    """

    cls: int
    sep: int
    pad: int | None
    mask: int | None
    every: tuple[int, ...]


def special_ids(tokenizer: tokenizers.Tokenizer) -> SpecialIds:
    """`cls` and `sep` are what the tokenizer puts before and after a text; `pad` and `mask` go by their usual names.

    So a BERT-style tokenizer gives [CLS] and [SEP], a RoBERTa-style one <s> and </s>, without a table of families.
    Raises `CompressError` when it puts anything else around a text.
    """
    own = plain(tokenizer)
    bare, dressed = own.encode("a", add_special_tokens=False).ids, own.encode("a").ids
    if len(dressed) != len(bare) + 2 or dressed[1:-1] != bare:
        raise CompressError(
            f"the tokenizer turns {len(bare)} tokens of text into {len(dressed)}; expected one special token before "
            "and one after, as BERT's [CLS] and [SEP] or RoBERTa's <s> and </s>"
        )
    cls, sep, pad, mask = dressed[0], dressed[-1], token_named(own, PAD), token_named(own, MASK)
    marked = {number for number, token in own.get_added_tokens_decoder().items() if token.special}
    every = marked | {number for number in (cls, sep, pad, mask) if number is not None}
    return SpecialIds(cls, sep, pad, mask, tuple(sorted(every)))


def token_named(tokenizer: tokenizers.Tokenizer, names: Sequence[str]) -> int | None:
    """The first of `names` that is marked special, else the first in the vocabulary: MPNet's holds `[PAD]` and `[MASK]` as
    words beside its own `<pad>` and `<mask>`."""
    marked = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    numbers = [tokenizer.token_to_id(name) for name in sorted(names, key=lambda name: name not in marked)]
    return next((number for number in numbers if number is not None), None)


def plain(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A copy that neither cuts nor pads, and that reads `[SEP]` in a text as four characters and not as the token."""
    own = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    own.no_truncation()
    own.no_padding()
    own.encode_special_tokens = True
    return own


def continuing(tokenizer: tokenizers.Tokenizer) -> np.ndarray:
    """bool [vocabulary]: the tokens that go on with a word: WordPiece's ## pieces, those of byte-level BPE and of SentencePiece without
    a space in front.

    Raises `CompressError` for a tokenizer of another kind.
    """
    kinds = json.loads(tokenizer.to_str())
    words = tokenizer.get_vocab(with_added_tokens=False)
    continues = np.zeros(max(tokenizer.get_vocab().values()) + 1, bool)
    if kinds["model"]["type"] == "WordPiece":
        prefix = kinds["model"]["continuing_subword_prefix"]
        goes_on = [number for word, number in words.items() if word.startswith(prefix) and word != prefix]
    elif kinds["model"]["type"] == "BPE" and "ByteLevel" in json.dumps(kinds["pre_tokenizer"]):
        goes_on = [number for word, number in words.items() if not word.startswith("Ġ")]
    elif kinds["model"]["type"] in ("BPE", "Unigram") and "Metaspace" in json.dumps(kinds["pre_tokenizer"]):
        goes_on = [number for word, number in words.items() if not word.startswith("▁")]
    else:
        raise CompressError(
            f"whole_words: a {kinds['model']['type']} tokenizer does not say which tokens begin a word; leave whole_words out"
        )
    continues[goes_on] = True
    continues[list(special_ids(tokenizer).every)] = False
    return continues
