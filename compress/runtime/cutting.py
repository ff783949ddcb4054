"""Cut long texts before they are tokenized: a model reads only their first tokens, and the rest costs memory and time.

The tokens that are kept must not change, so a text is cut only where its tokenizer would begin a new word whatever follows:

* Before a space after an ASCII letter or digit. Neither takes part in a composition of characters or in a grapheme with the
  other, and the pre-tokenizers below all split there. With BERT's normalizer also between two Chinese characters, which it
  puts spaces around.
* Models see one word at a time. BPE with dropout is drawn anew at each call, so its texts are not cut.
* Added tokens such as [MASK] are searched for in the whole text. If one of them contains a character that texts are cut at, no text is cut.

So the tokens of a text are those of its parts, one after the other. Any other tokenizer receives the whole text; `long_pairs` truncates
its pairs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, cast

import tokenizers

from .long_pairs import LongPairs
from .reading import Text

LONG = 32  # characters for each token that is kept: shorter texts are tokenized whole
_FIRST = 8  # characters per token, of the first part that is tried
_PART = 1 << 16  # characters that are counted at a time
_AFTER_A_WORD = r"(?<=[A-Za-z0-9]) "
_BETWEEN_CHINESE = r"(?<=[\u4e00-\u9fff])(?=[\u4e00-\u9fff])"
_CUT_AT = re.compile(r"[\s\u2581\u4e00-\u9fff]")  # and Metaspace's mark for a space
_NORMALIZERS = (
    "BertNormalizer",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Lowercase",
    "StripAccents",
    "Precompiled",
    "Strip",
    "Replace",
)
_SPACES = {"Regex": " {2,}"}  # XLM-R's pattern; another could match across the cut


def truncation_side(tokenizer: tokenizers.Tokenizer) -> str:
    """Return the side on which the tokenizer, or a copy of it, cuts texts that are too long: `left` or `right`."""
    return (tokenizer.truncation or {}).get("direction", "right")


def cut_flags(encodings: Sequence[tokenizers.Encoding]) -> list[bool]:
    """Return for each text, or pair, whether it has tokens beyond those that are kept."""
    return [bool(encoding.overflowing) for encoding in encodings]


class Cutter:
    """Cuts texts for `tokenizer`, whose truncation defines how many tokens are kept."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        self._tokenizer = tokenizer
        truncation: dict[str, Any] = tokenizer.truncation or {}
        self._kept: int = truncation.get("max_length", 0)
        self._longest_first = truncation.get("strategy") == "longest_first"
        self._right = truncation_side(tokenizer) == "right" and self._longest_first

    def encode(self, texts: Iterable[Text]) -> list[tokenizers.Encoding]:
        """Return the tokens of texts and pairs, truncated."""
        short = [*map(self.cut, texts)]
        pairs = {number: text for number, text in enumerate(short) if self._is_long_pair(text)}
        rest: list[Any] = [text for number, text in enumerate(short) if number not in pairs]
        encodings = iter(self._tokenizer.encode_batch_fast(rest))
        return [
            cast(tokenizers.Encoding, self._long_pairs.encode(*pairs[number])) if number in pairs else next(encodings)
            for number in range(len(short))
        ]

    def _is_long_pair(self, text: Text) -> bool:
        return self._longest_first and not isinstance(text, str) and max(map(len, text)) > LONG * self._kept

    @cached_property
    def _long_pairs(self) -> LongPairs:
        return LongPairs(self._untruncated_tokenizer, self._kept, truncation_side(self._tokenizer))

    def cut(self, text: Text) -> Text:
        """Return a text or a pair that has the same tokens after truncation."""
        if max(map(len, (text,) if isinstance(text, str) else text)) <= LONG * self._kept or self._cut_pattern is None:
            return text
        return self._start_of(text, self._kept) if isinstance(text, str) else self._pair(*text)

    def _pair(self, one: str, other: str) -> tuple[str, str]:
        """Cut a pair. If both fill all tokens, each keeps half, and an odd token goes to the longer: the cut text must stay longer too."""
        starts = self._start_of(one, self._kept), self._start_of(other, self._kept)
        counts = tuple(map(self._count, starts))
        odd = (self._kept - self._tokenizer.num_special_tokens_to_add(True)) % 2
        if min(counts) < self._kept or not odd:
            return starts
        if self._is_longer(one, other):
            return self._start_of(one, counts[1] + 1), starts[1]
        return starts[0], self._start_of(other, counts[0])

    def _start_of(self, text: str, tokens: int) -> str:
        """Return a part of `text` with at least so many tokens, or all of it."""
        if len(text) <= LONG * self._kept or self._cut_pattern is None:
            return text
        size = _FIRST * self._kept
        while (place := self._cut_pattern.search(text, size)) and place.start() <= len(text) // 2:
            if self._count(part := text[: place.start()]) >= tokens:
                return part
            size = 2 * place.start()
        return text

    def _is_longer(self, one: str, other: str) -> bool:
        """Whether `one` has more tokens; they are counted until one of the two ends."""
        counts_of_one, counts_of_other = self._counts(one), self._counts(other)
        left = right = 0
        while True:
            behind = left <= right
            more = next(counts_of_one if behind else counts_of_other, None)
            if more is None:
                return not behind
            left, right = (left + more, right) if behind else (left, right + more)

    def _counts(self, text: str) -> Iterator[int]:
        """Yield token counts of `text`, a part at a time."""
        start = 0
        while start < len(text):
            place = self._cut_pattern.search(text, start + _PART) if self._cut_pattern else None
            end = place.start() if place else len(text)
            yield self._count(text[start:end])
            start = end

    def _count(self, text: str) -> int:
        return len(self._untruncated_tokenizer.encode(text, add_special_tokens=False))

    @cached_property
    def _untruncated_tokenizer(self) -> tokenizers.Tokenizer:
        """The tokenizer without truncation."""
        own = tokenizers.Tokenizer.from_str(self._tokenizer.to_str())
        own.no_truncation()
        return own

    @cached_property
    def _cut_pattern(self) -> re.Pattern[str] | None:
        """Where a text may be cut; None if the tokenizer is not known to allow it."""
        own = self._tokenizer
        normalizers, splitters = _component_settings(own.normalizer), _component_settings(own.pre_tokenizer)
        known = all(map(_is_local, normalizers)) and all(map(_splits, splitters)) and splitters
        if not (self._right and known and _is_plain(own.model)) or any(map(self._holds_place, _added_tokens(own))):
            return None
        bert = [part for part in normalizers if part["type"] == "BertNormalizer"]
        chinese = (
            bert and bert[0]["handle_chinese_chars"] and splitters[0]["type"] in ("BertPreTokenizer", "WhitespaceSplit")
        )
        return re.compile(f"{_AFTER_A_WORD}|{_BETWEEN_CHINESE}" if chinese else _AFTER_A_WORD)

    def _holds_place(self, token: str) -> bool:
        normalizer = self._tokenizer.normalizer
        return any(map(_CUT_AT.search, (token, normalizer.normalize_str(token) if normalizer else token)))


def _added_tokens(tokenizer: tokenizers.Tokenizer) -> list[str]:
    return [token.content for token in tokenizer.get_added_tokens_decoder().values()]


def _component_settings(component: Any) -> list[dict[str, Any]]:
    """Return the settings of a normalizer or a pre-tokenizer, one by one if it is a sequence."""
    if component is None:
        return []
    settings = json.loads(component.__getstate__())
    return settings.get("normalizers") or settings.get("pretokenizers") or [settings]


def _is_local(part: dict[str, Any]) -> bool:
    """Whether a normalizer treats a part of a text as it treats the whole."""
    if part["type"] == "Replace":
        pattern = part["pattern"]
        return pattern == _SPACES or not re.search(r"\s", pattern.get("String", " "))
    return part["type"] in _NORMALIZERS


def _splits(part: dict[str, Any]) -> bool:
    """Whether a pre-tokenizer begins a new word at a space after a letter or a digit, whatever follows."""
    if part["type"] == "ByteLevel":
        return part["use_regex"]
    if part["type"] == "Metaspace":
        return part["split"] and part["prepend_scheme"] == "always"
    return part["type"] in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit")


def _is_plain(model: Any) -> bool:
    """Whether a model always gives a word the same tokens."""
    if isinstance(model, tokenizers.models.BPE):
        return not model.dropout
    return isinstance(model, tokenizers.models.WordPiece | tokenizers.models.Unigram)
