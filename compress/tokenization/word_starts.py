"""How tokenizers mark the words of a text: which tokens begin one, and which continue one."""

from __future__ import annotations

import json
import re

import numpy as np
import tokenizers
from tokenizers import decoders

from ..errors import CompressError
from .special import special_ids

BYTE_LEVEL, SENTENCEPIECE = SPACES = ("Ġ", "▁")  # the space before a word in byte-level BPE and in SentencePiece
# Thai, Lao, Burmese, Khmer, kana and Chinese characters: scripts without spaces between words.
UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_CJK_SIGNS = re.compile(r"[\u3000-\u303f]")  # their punctuation
_FROM_BYTES = decoders.ByteLevel()


def word_mark(tokenizer: tokenizers.Tokenizer) -> str:
    """Return the prefix of tokens that begin a word: "" for WordPiece, otherwise a character for the space before."""
    if json.loads(tokenizer.to_str())["model"]["type"] == "WordPiece":
        return ""
    tokens = tokenizer.get_vocab()
    return max(SPACES, key=lambda mark: sum(token.startswith(mark) for token in tokens))


def decode_token(token: str, mark: str) -> str:
    """Return the token as in a text. A byte-level `token` has a character for each byte; if its bytes are not UTF-8, the result has U+FFFD,
    which is not a letter."""
    return _FROM_BYTES.decode([token]) if mark == BYTE_LEVEL else token


def lacks_leading_space(tokenizer: tokenizers.Tokenizer) -> bool:
    """Whether a text's first word has another first piece than the same word after a space, as with RoBERTa and ModernBERT: the tokenizer
    marks the space before a word, and does not add one before a text."""
    if tokenizer.pre_tokenizer is None:
        return False
    normalize = (lambda text: text) if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str
    unspaced, spaced = (tokenizer.pre_tokenizer.pre_tokenize_str(normalize(text)) for text in ("a", " a"))
    return bool(unspaced and spaced) and spaced[0][0].startswith(SPACES) and not unspaced[0][0].startswith(SPACES)


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
        continuing_numbers = [number for word, number in words.items() if word.startswith(prefix) and word != prefix]
    elif kinds["model"]["type"] == "BPE" and "ByteLevel" in json.dumps(kinds["pre_tokenizer"]):
        continuing_numbers = [
            number for word, number in words.items() if not (word.startswith(BYTE_LEVEL) or _is_unspaced(_bytes(word)))
        ]
    elif kinds["model"]["type"] in ("BPE", "Unigram") and "Metaspace" in json.dumps(kinds["pre_tokenizer"]):
        continuing_numbers = [
            number
            for word, number in words.items()
            if not (word.startswith(SENTENCEPIECE) or _is_unspaced(word.encode()))
        ]
    else:
        raise CompressError(
            f"whole_words: a {kinds['model']['type']} tokenizer does not say which tokens begin a word; leave whole_words out"
        )
    continues[continuing_numbers] = True
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
