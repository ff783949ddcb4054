"""Which words of a split's texts may be replaced."""

from __future__ import annotations

import numpy as np

from ..tasks import Split
from .texts import Texts, words_of

_AT_ONCE = 1024  # examples


def kept_words(texts: Texts, split: Split, outside: int | None, fixed: int) -> list[np.ndarray] | None:
    """Return for each example which of its words are never replaced, bool [word]; None if there are none. `outside`, `fixed`: as in
    `augment`."""
    if split.labels_spans:
        sizes = [[len(texts.spans[number]) for number in numbers] for numbers in texts.of_example]
        return [np.arange(question + context) >= question for question, context in sizes]
    if fixed:
        columns = ([len(texts.spans[number]) for number in numbers] for numbers in texts.of_example)
        return [np.arange(sum(words)) < sum(words[:fixed]) for words in columns]
    if outside is None or not split.labels_words:
        return None
    kept = []
    for numbers, label in zip(texts.of_example, split.labels, strict=True):
        spans = np.array(texts.spans[numbers[0]], np.int64).reshape(-1, 2)
        inside = label[label[:, 0] != outside]
        # The first label that ends after this word starts.
        next_one = np.searchsorted(inside[:, 2], spans[:, 0], side="right")
        starts = np.append(inside[:, 1], np.iinfo(np.int32).max)[next_one]
        kept.append(starts < spans[:, 1])
    return kept


def has_replaceable_words(split: Split, *, outside: int | None = None, fixed: int = 0) -> bool:
    """Whether any word of the split may be replaced; reads no further than the first. `outside`, `fixed`: as in `augment`."""
    for start in range(0, len(split), _AT_ONCE):
        part = split.select(np.arange(start, min(start + _AT_ONCE, len(split))))
        texts = words_of(part)
        kept = kept_words(texts, part, outside, fixed)
        if texts.words and (kept is None or not all(words.all() for words in kept)):
            return True
    return False
