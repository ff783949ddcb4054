"""Find the special tokens of a tokenizer by their function rather than their names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers

from ..errors import CompressError

PAD = ("[PAD]", "<pad>")
MASK = ("[MASK]", "<mask>")
UNKNOWN = ("[UNK]", "<unk>")
SPACES = ("Ġ", "▁")  # the space before a word in byte-level BPE and SentencePiece

# Thai, Lao, Burmese, Khmer, kana and Chinese characters: scripts without spaces between words.
UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_CJK_SIGNS = re.compile(r"[\u3000-\u303f]")  # their punctuation


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
    """Return the id of the first of `names` that is marked special, else the first in the vocabulary: MPNet's has `[PAD]` and `[MASK]` as
    words besides its own `<pad>` and `<mask>`."""
    marked = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    numbers = [tokenizer.token_to_id(name) for name in sorted(names, key=lambda name: name not in marked)]
    return next((number for number in numbers if number is not None), None)


def plain(tokenizer: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """Return a copy that neither truncates nor pads, and that reads `[SEP]` in a text as characters, not as the token."""
    own = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    own.no_truncation()
    own.no_padding()
    own.encode_special_tokens = True
    return own


def lacks_leading_space(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether a text's first word has another first piece than the same word after a space, as with RoBERTa and ModernBERT: the tokenizer
    marks the space before a word, and does not add one before a text."""
    if tokenizer.pre_tokenizer is None:
        return False
    normalize = (lambda text: text) if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str
    bare, spaced = (tokenizer.pre_tokenizer.pre_tokenize_str(normalize(text)) for text in ("a", " a"))
    return bool(bare and spaced) and spaced[0][0].startswith(SPACES) and not bare[0][0].startswith(SPACES)


def spelled_special(tokenizer: tokenizers.Tokenizer) -> frozenset[int]:
    """Return the special tokens, except the unknown one, that `plain` still finds in a text with their names: those of a Unigram tokenizer,
    whose vocabulary has them as pieces. With a large vocabulary this takes a second."""
    if type(tokenizer.model).__name__ != "Unigram":
        return frozenset()
    own = plain(tokenizer)
    unknown = token_named(own, UNKNOWN)
    found: set[int] = set()
    for number in special_ids(tokenizer).every:
        name = own.id_to_token(number)
        if number != unknown and name and number in own.encode(f"a {name} {name}", add_special_tokens=False).ids:
            found.add(number)
    return frozenset(found)


def continuing(tokenizer: tokenizers.Tokenizer) -> np.ndarray:
    """Return bool [vocabulary]: the tokens that continue a word: WordPiece's ## pieces; for byte-level BPE and SentencePiece, those without
    a leading space. In the latter two, tokens that begin with a character of a script without spaces always begin a word.

    Raises `CompressError` for other tokenizers.
    """
    kinds = json.loads(tokenizer.to_str())
    words = tokenizer.get_vocab(with_added_tokens=False)
    continues = np.zeros(max(tokenizer.get_vocab().values()) + 1, bool)
    if kinds["model"]["type"] == "WordPiece":
        prefix = kinds["model"]["continuing_subword_prefix"]
        goes_on = [number for word, number in words.items() if word.startswith(prefix) and word != prefix]
    elif kinds["model"]["type"] == "BPE" and "ByteLevel" in json.dumps(kinds["pre_tokenizer"]):
        goes_on = [number for word, number in words.items() if not (word.startswith("Ġ") or _is_unspaced(_bytes(word)))]
    elif kinds["model"]["type"] in ("BPE", "Unigram") and "Metaspace" in json.dumps(kinds["pre_tokenizer"]):
        goes_on = [
            number for word, number in words.items() if not (word.startswith("▁") or _is_unspaced(word.encode()))
        ]
    else:
        raise CompressError(
            f"whole_words: a {kinds['model']['type']} tokenizer does not say which tokens begin a word; leave whole_words out"
        )
    continues[goes_on] = True
    continues[list(special_ids(tokenizer).every)] = False
    return continues


def _is_unspaced(text: bytes) -> bool:
    """Whether UTF-8 begins with a character of a script without spaces, or with enough bytes of one to exclude almost any other."""
    size = next((length for least, length in ((0xF0, 4), (0xE0, 3)) if text[:1] >= bytes([least])), 0)
    if not size:
        return False
    ends = (text[:size].ljust(size, fill).decode(errors="replace")[0] for fill in (b"\x80", b"\xbf"))
    return all(UNSPACED.match(end) or _CJK_SIGNS.match(end) for end in ends)


def _bytes(token: str) -> bytes:
    """Return the bytes of a byte-level BPE token: each character is a byte, with unprintable bytes mapped to other characters."""
    return bytes(_BYTES.get(character, 0) for character in token)


_PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_MOVED = (byte for byte in range(256) if byte not in _PRINTED)
_BYTES = {chr(byte): byte for byte in _PRINTED} | {chr(256 + place): byte for place, byte in enumerate(_MOVED)}
