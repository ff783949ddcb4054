"""Pairs of a context and an ending in a model's tokens: the context is cut first, so that the endings of a question stay apart."""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers

from ..errors import CompressError
from .cutting import Cutter


class EndingCutter:
    """Encodes pairs in at most `max_length` tokens, special ones included, with a copy of `tokenizer`; also in several threads.

    Of a pair that is too long the context loses tokens, on the side where the tokenizer's truncation cuts. An ending that alone leaves
    no room for one token of it is cut too, at its end."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, max_length: int) -> None:
        side = (tokenizer.truncation or {}).get("direction", "right")
        self._pairs, self._contexts = (tokenizers.Tokenizer.from_str(tokenizer.to_str()) for _ in range(2))
        for own in (self._pairs, self._contexts):
            own.no_padding()
        self._pairs.enable_truncation(max_length, strategy="only_first", direction=side)
        self._contexts.enable_truncation(max_length, strategy="longest_first", direction=side)
        self._most = max_length - tokenizer.num_special_tokens_to_add(True) - 1
        self._whole = tokenizers.Tokenizer.from_str(tokenizer.to_str())
        self._whole.no_padding()
        self._whole.no_truncation()
        self._cutter = Cutter(self._contexts)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[tokenizers.Encoding], list[int]]:
        """An encoding for each pair, and the numbers of those whose endings were cut."""
        lengths = [
            len(ending) for ending in self._whole.encode_batch([end for _, end in pairs], add_special_tokens=False)
        ]
        cut = [row for row, length in enumerate(lengths) if length > self._most]
        endings = {row: self.shortened(pairs[row][1]) for row in cut}
        whole = [(str(self._cutter.cut(context)), endings.get(row, end)) for row, (context, end) in enumerate(pairs)]
        return self._pairs.encode_batch(whole), cut

    def check_apart(self, where: str, endings: Sequence[str]) -> None:
        """CompressError, which begins with `where`: two different `endings` of one question are the same once they are cut."""
        kept: dict[str, str] = {}
        for ending in endings:
            if (other := kept.setdefault(self.shortened(ending), ending)) != ending:
                raise CompressError(
                    f"{where}two endings of {len(other):,} and {len(ending):,} characters differ behind the {self._most} tokens alone that "
                    f"are read of them: {other[:40]!r}; expected shorter ones, or a larger max_length"
                )

    def shortened(self, ending: str) -> str:
        """As much of it as there is room for. A part of a word may have more tokens than it had in the word, hence the loop."""
        while len(found := self._whole.encode(ending, add_special_tokens=False)) > self._most:
            end = found.offsets[self._most - 1][1] if self._most else 0
            ending = ending[: min(end, len(ending) - 1)]
        return ending
