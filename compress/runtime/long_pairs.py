"""Long pairs, truncated as tokenizers truncates the longer text first. Its own truncation also keeps every part of one text beside every
part of the other, which takes time and memory of the order of their product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import tokenizers


@dataclass(frozen=True)
class Tokens:
    """What models read of a `tokenizers.Encoding`. `overflowing`: whether there are more that are not read."""

    ids: list[int]
    type_ids: list[int]
    overflowing: bool = False

    @property
    def attention_mask(self) -> list[int]:
        return [1] * len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


class LongPairs:
    """Encodes pairs with `tokenizer`, which does not truncate, to at most `max_length` tokens, special ones included, cut at `side`."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, max_length: int, side: str) -> None:
        self._tokenizer, self._side = tokenizer, side
        self._room = max_length - tokenizer.num_special_tokens_to_add(True)

    def encode(self, one: str, other: str) -> Tokens:
        """Return the tokens of a pair."""
        texts = [self._tokenizer.encode(text, add_special_tokens=False).ids for text in (one, other)]
        lengths = kept_lengths(len(texts[0]), len(texts[1]), self._room)
        kept = [ids[len(ids) - n :] if self._side == "left" else ids[:n] for ids, n in zip(texts, lengths, strict=True)]
        ids: list[int] = []
        type_ids: list[int] = []
        for text, type_id, special in self._form:
            part = [special] if text is None else kept[text]
            ids += part
            type_ids += [type_id] * len(part)
        return Tokens(ids, type_ids, sum(lengths) < sum(map(len, texts)))

    @cached_property
    def _form(self) -> list[tuple[int | None, int, int]]:
        """The parts of a pair: 0 or 1 for a text, with its type id, or None for a special token, with its type id and its id."""
        pair = self._tokenizer.encode("a", "a")
        parts: list[tuple[int | None, int, int]] = []
        for text, type_id, number in zip(pair.sequence_ids, pair.type_ids, pair.ids, strict=True):
            if text is None or not parts or parts[-1][0] != text:  # a text may be several tokens
                parts.append((text, type_id, number))
        return parts


def kept_lengths(one: int, other: int, room: int) -> tuple[int, int]:
    """Return how many tokens each text keeps of `room` tokens: the shorter all, if it has at most half of them, else each half. An odd
    token goes to the longer text, and to the second of two equally long ones."""
    if one + other <= room:
        return one, other
    short = min(one, other, room // 2)
    return (short, room - short) if one <= other else (room - short, short)
