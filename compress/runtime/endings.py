"""Encode pairs of a context and an ending. The context is cut first, so that the endings of a question stay different."""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers

from ..errors import CompressError
from .cutting import Cutter, truncation_side


class EndingCutter:
    """Encodes pairs in at most `max_length` tokens, special ones included, with a copy of `tokenizer`; may be used from several threads.

    In a pair that is too long the context loses tokens, on the side where the tokenizer truncates. An ending that leaves no space for one
    token of the context is cut too, at its end.
    """

    def __init__(self, tokenizer: tokenizers.Tokenizer, max_length: int) -> None:
        side = truncation_side(tokenizer)
        self._pairs, self._contexts = (tokenizers.Tokenizer.from_str(tokenizer.to_str()) for _ in range(2))
        for own in (self._pairs, self._contexts):
            own.no_padding()
        self._pairs.enable_truncation(max_length, strategy="only_first", direction=side)
        self._contexts.enable_truncation(max_length, strategy="longest_first", direction=side)
        self._most = max_length - tokenizer.num_special_tokens_to_add(True) - 1
        self._alone = tokenizers.Tokenizer.from_str(tokenizer.to_str())
        self._alone.no_padding()
        self._alone.enable_truncation(max_length)  # more than an ending may have
        self._cutter, self._endings = Cutter(self._contexts), Cutter(self._alone)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[tokenizers.Encoding], list[int]]:
        """Return an encoding for each pair, and the indices of those whose endings were cut."""
        ends = [str(self._endings.cut(end)) for _, end in pairs]
        lengths = [len(ending) for ending in self._alone.encode_batch(ends, add_special_tokens=False)]
        cut = [row for row, length in enumerate(lengths) if length > self._most]
        endings = {row: self.shortened(pairs[row][1]) for row in cut}
        whole = [(str(self._cutter.cut(context)), endings.get(row, end)) for row, (context, end) in enumerate(pairs)]
        return self._pairs.encode_batch(whole), cut

    def check_distinct(self, where: str, endings: Sequence[str]) -> None:
        """Raise `CompressError`, whose message begins with `where`, if two different `endings` of one question have the same tokens once
        they are cut."""
        kept: dict[tuple[int, ...], tuple[str, bool]] = {}
        for ending in endings:
            short = self.shortened(ending)
            ids = tuple(self._alone.encode(short, add_special_tokens=False).ids)
            other, was_cut = kept.setdefault(ids, (ending, short != ending))
            if other != ending and (was_cut or short != ending):
                raise CompressError(
                    f"{where}two endings of {len(other):,} and {len(ending):,} characters differ behind the {self._most} tokens alone that "
                    f"are read of them: {other[:40]!r}; expected shorter ones, or a larger max_length"
                )

    def shortened(self, ending: str) -> str:
        """Return as much of the ending as fits. A part of a word may have more tokens than it had in the word, hence the loop."""
        ending = str(self._endings.cut(ending))
        while len(encoding := self._alone.encode(ending, add_special_tokens=False)) > self._most:
            end = encoding.offsets[self._most - 1][1] if self._most else 0
            ending = ending[: min(end, len(ending) - 1)]
        return ending
