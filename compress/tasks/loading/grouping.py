"""Group examples with a common source, which a split must not separate: extracts of one sentence, pairs with one premise."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..data import Split
from .words import HashedTexts, words_of

RUN = 7  # consecutive words that two unrelated texts rarely share
NOWHERE = -1  # the group of a text that belongs to several: an extract of two sources, a phrase that many share


def copies(split: Split) -> tuple[list[str], np.ndarray]:
    """Return the distinct examples, as words with a tab between two texts; and the index of each example among them, int64."""
    columns = [[words_of(text) for text in column] for column in split.texts]
    return _distinct(["\t".join(texts) for texts in zip(*columns, strict=True)])


def source_groups(split: Split, most: int) -> np.ndarray:
    """Return the group of each example, int64; `NOWHERE` if it belongs to several.

    Single texts are grouped if they share `RUN` consecutive words, or if a shorter one is contained in the other; pairs if they share a
    text, on either side. What occurs in more than `most` texts or pairs does not join them: a boilerplate phrase is not a source, and a
    group of more than `most` would not fit in the split.
    """
    if len(split.texts) == 2:
        return _by_shared_text(split.texts, most)
    distinct, index = copies(split)
    return _by_shared_run(HashedTexts.of(distinct), most)[index]


def context_groups(split: Split) -> np.ndarray:
    """Return the group of each question, int64: questions on one context, ignoring case and punctuation, are in one group."""
    return _distinct([words_of(context) for context in split.texts[1]])[1]


def near_to(splits: Sequence[Split], train: Split) -> list[np.ndarray]:
    """Return which examples of each split, bool [example], share `RUN` consecutive words with a text of train or, if shorter, are contained
    in one; for pairs, which share a text with train, on either side; for questions, which a context. Empty texts share nothing."""
    of_train = train.texts[1:] if train.labels_spans else train.texts
    columns = [
        [words_of(text) for texts in column for text in texts]
        for column in zip(*(split.texts[-len(of_train) :] for split in splits), strict=True)
    ]
    if len(train.texts) == 2:
        known = {words_of(text) for column in of_train for text in column} - {""}
        near = np.array([not known.isdisjoint(texts) for texts in zip(*columns, strict=True)], dtype=bool)
    else:
        near = _shares_run(HashedTexts.of(columns[0]), HashedTexts.of(map(words_of, train.texts[0])))
        near &= np.array([text != "" for text in columns[0]], dtype=bool)
    return np.split(near, np.cumsum([len(split) for split in splits])[:-1])


def _shares_run(texts: HashedTexts, others: HashedTexts) -> np.ndarray:
    """Return which of `texts` share a run with one of `others`, or are contained in one, bool [text]."""
    matches = np.zeros(len(texts), dtype=bool)
    for length in range(1, RUN + 1):
        runs, owners = texts.runs(length)
        eligible = (texts.counts[owners] == length) | (length == RUN)
        keys, place = np.unique(runs[eligible], return_inverse=True)
        if len(keys):
            known = others.runs(length)[0]
            nearest = np.minimum(np.searchsorted(keys, known), len(keys) - 1)
            shared = np.zeros(len(keys), dtype=bool)
            shared[nearest[keys[nearest] == known]] = True
            matches[owners[eligible][shared[place]]] = True
    return matches


def _by_shared_text(columns: Sequence[list[str]], most: int) -> np.ndarray:
    count = len(columns[0])
    _, index = _distinct([words_of(text) for column in columns for text in column])
    return _connected_groups(index, np.tile(np.arange(count), 2), count, most)[0]


def _by_shared_run(texts: HashedTexts, most: int) -> np.ndarray:
    runs, owners = texts.runs(RUN)
    groups, common = _connected_groups(runs, owners, len(texts), most)
    own_runs = np.bincount(owners, minlength=len(texts))
    groups[(own_runs > 0) & (np.bincount(owners[common], minlength=len(texts)) == own_runs)] = NOWHERE
    for length in range(RUN - 1, 0, -1):
        if (texts.counts == length).any():
            _join_sources(texts, length, groups)
    return groups


def _join_sources(texts: HashedTexts, length: int, groups: np.ndarray) -> None:
    """Put each text of `length` words into the group of the longer texts that contain it."""
    runs, owners = texts.runs(length)
    whole = texts.counts[owners] == length
    order = np.argsort(runs[whole])
    keys, ids = runs[whole][order], owners[whole][order]
    runs, owners = runs[~whole], owners[~whole]
    place = np.minimum(np.searchsorted(keys, runs), len(keys) - 1)
    matches = keys[place] == runs
    inside, sources = ids[place[matches]], groups[owners[matches]]
    lowest, highest = np.full(len(texts), len(texts)), np.full(len(texts), NOWHERE)
    np.minimum.at(lowest, inside, sources)
    np.maximum.at(highest, inside, sources)
    contained = np.unique(inside)
    groups[contained] = np.where(lowest[contained] == highest[contained], lowest[contained], NOWHERE)


def _connected_groups(keys: np.ndarray, owners: np.ndarray, count: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return groups of `count` owners that share a key that at most `most` have, int64 [owner]; and which keys more have, bool [key]."""
    order = np.argsort(keys, kind="stable")
    same = keys[order][1:] == keys[order][:-1]
    starts = np.flatnonzero(np.concatenate([[True], ~same])) if len(keys) else np.zeros(0, dtype=np.int64)
    sizes = np.diff(np.append(starts, len(keys)))
    frequent = np.repeat(sizes > most, sizes)
    linked = np.flatnonzero(same & ~frequent[1:])
    left, right = owners[order[linked]], owners[order[linked + 1]]
    common = np.zeros(len(keys), dtype=bool)
    common[order] = frequent
    return _components(left, right, count), common


def _components(left: np.ndarray, right: np.ndarray, count: int) -> np.ndarray:
    """Return the lowest member of each node's connected component, int64 [node], from edges between `left` and `right`. scipy's version
    takes longer to import than most tasks to read."""
    lowest = np.arange(count)
    while (differ := lowest[left] != lowest[right]).any():
        left, right = lowest[left[differ]], lowest[right[differ]]
        np.minimum.at(lowest, np.maximum(left, right), np.minimum(left, right))
        while (lowest != lowest[lowest]).any():
            lowest = lowest[lowest]
    return lowest


def _distinct(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    known: dict[str, int] = {}
    index = np.fromiter((known.setdefault(text, len(known)) for text in texts), dtype=np.int64, count=len(texts))
    return list(known), index
