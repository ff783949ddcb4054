"""Metrics of a label for each word, on weighted texts. Imports numpy alone.

Gold labels of all texts' words stand in one array, int64 [word]; the first word of each text has the bitwise complement of its
label's id, so that the texts can be told apart again: `joined` and `parted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import CompressError
from .correlation import draws
from .headline import FEWEST, Headline, Pairs, check_lengths, check_names

OUTSIDE = "O"  # the label of a word that is of no entity
TAG_METRICS = ("entity_f1", "accuracy")


def joined(texts: Sequence[np.ndarray]) -> np.ndarray:
    """int64 [word], of the label ids of each text's words; texts without words leave no trace."""
    parts = [np.array(ids, np.int64) for ids in texts if len(ids)]
    for ids in parts:
        ids[0] = ~ids[0]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def parted(gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The label ids, int64 [word], and which words begin a text, bool [word]."""
    gold = np.asarray(gold, np.int64)
    return np.where(gold < 0, ~gold, gold), gold < 0


def are_entities(names: Sequence[str]) -> bool:
    """Whether the labels are those of entities: `O`, `B-TYPE` and `I-TYPE`."""
    return (
        OUTSIDE in names
        and len(names) > 1
        and all(name == OUTSIDE or (name[:2] in ("B-", "I-") and len(name) > 2) for name in names)
    )


@dataclass(frozen=True)
class Chunks:
    """Entities in the words of all texts, in order: the first word of each, its last one, and its type, int64 [entity]."""

    first: np.ndarray
    last: np.ndarray
    type: np.ndarray


@dataclass(frozen=True)
class TypeScore:
    """In points. `entities`: how many are gold, `given`: how many are answered."""

    precision: float
    recall: float
    f1: float
    entities: int
    given: int


@dataclass(frozen=True)
class TagsHeadline(Headline):
    """Of outputs [word, label]; the label with the largest is decided on. `gold` as `joined` gives it; `names` of the labels.

    `entity_f1`: of entities of all types, right where type and both borders are (Tjong Kim Sang & De Meulder 2003, CoNLL, §2.3);
    an `I-` after no word of its type begins one. `accuracy`: of words. Resamples draw texts, since words of a text err together.
    """

    metrics: tuple[str, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.metrics, TAG_METRICS)
        if "entity_f1" in self.metrics and not are_entities(self.names):
            raise CompressError(
                f"metric `entity_f1` counts entities, with labels O, B-… and I-…, found {list(self.names[:8])}; take `accuracy`"
            )

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        return float(self._points(self._counts(outputs, gold).sum(axis=0, keepdims=True).astype(np.float64))[0])

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        return base.argmax(axis=1) != other.argmax(axis=1)

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        return None  # McNemar's test takes words of one text for independent, which they are not

    def changed(self, pairs: Pairs, gold: np.ndarray) -> int:
        words = np.any([self.differ(base, other) for base, other in pairs], axis=0)
        return len(np.unique(_text_of(gold)[words]))

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Where models differ on too few texts to tell them apart, two are added of which one model answers a word wrongly."""
        counts = [self._counts(outputs, gold) for pair in pairs for outputs in pair]
        if self.changed(pairs, gold) < FEWEST:
            counts = [_with_mistaken(each, base=place % 2 == 0) for place, each in enumerate(counts)]
        parts = [
            np.stack([self._points(weights @ each) for each in counts])
            for weights in draws(len(counts[0]), samples, rng)
        ]
        return np.concatenate(parts, axis=1)

    def _counts(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray:
        """Of each text, int64 [text, 4]: entities that are given rightly, those given and gold, words that are right, words."""
        ids, begins = parted(gold)
        given, text = outputs.argmax(axis=1), _text_of(gold)
        texts = int(text[-1]) + 1
        of_words = [np.bincount(text, weights, texts).astype(np.int64) for weights in (given == ids, None)]
        if "entity_f1" not in self.metrics:
            nothing = np.zeros(texts, np.int64)
            return np.stack([nothing, nothing, *of_words], axis=1)
        true, found = (chunks(labels, begins, self.names) for labels in (ids, given))
        right = true.first[_same(true, found)]
        of_entities = [
            np.bincount(text[words], minlength=texts) for words in (right, np.append(true.first, found.first))
        ]
        return np.stack([*of_entities, *of_words], axis=1)

    def _points(self, counts: np.ndarray) -> np.ndarray:
        """[sample], of summed counts [sample, 4]."""
        right, occurrences, right_words, words = counts.T
        scores = {"entity_f1": 2 * right / np.maximum(occurrences, 1), "accuracy": right_words / np.maximum(words, 1)}
        return 100 * np.mean([scores[name] for name in self.metrics], axis=0)


def chunks(ids: np.ndarray, begins: np.ndarray, names: Sequence[str]) -> Chunks:
    """The entities of labels `ids` [word], of texts that begin where `begins` says."""
    types = {name: place for place, name in enumerate(entity_types(names))}
    of_label = np.array([types.get(name[2:], -1) if name != OUTSIDE else -1 for name in names])
    starts = np.array([name.startswith("B-") for name in names])[ids]
    kind = of_label[ids]
    goes_on = np.zeros(len(ids), bool)  # whether a word is of the entity of the word before
    goes_on[1:] = (kind[1:] == kind[:-1]) & (kind[1:] >= 0) & ~starts[1:] & ~begins[1:]
    first = np.flatnonzero((kind >= 0) & ~goes_on)
    last = np.flatnonzero((kind >= 0) & ~np.append(goes_on[1:], False))
    return Chunks(first, last, kind[first])


def entity_types(names: Sequence[str]) -> tuple[str, ...]:
    """Sorted, of label names of entities."""
    return tuple(sorted({name[2:] for name in names if name != OUTSIDE}))


def type_scores(outputs: np.ndarray, gold: np.ndarray, names: Sequence[str]) -> dict[str, TypeScore]:
    """Of each type of entity; a share of nothing is 0."""
    ids, begins = parted(gold)
    true, found = (chunks(labels, begins, names) for labels in (ids, outputs.argmax(axis=1)))
    right = true.type[_same(true, found)]
    types = entity_types(names)
    numbers = [np.bincount(kinds, minlength=len(types)).tolist() for kinds in (right, true.type, found.type)]
    return {name: _score(*counts) for name, *counts in zip(types, *numbers, strict=True)}


def entity_flips(base: np.ndarray, other: np.ndarray, gold: np.ndarray, names: Sequence[str]) -> tuple[int, int]:
    """Of the entities that either of two models answers, how many are not the other's; and how many there are."""
    begins = parted(gold)[1]
    mine, theirs = (chunks(outputs.argmax(axis=1), begins, names) for outputs in (base, other))
    common = int(_same(mine, theirs).sum())
    every = len(mine.first) + len(theirs.first) - common
    return every - common, every


def _score(right: int, entities: int, given: int) -> TypeScore:
    precision, recall, f1 = (
        100 * part / max(of, 1) for part, of in ((right, given), (right, entities), (2 * right, entities + given))
    )
    return TypeScore(precision, recall, f1, entities, given)


def _same(true: Chunks, found: Chunks) -> np.ndarray:
    """Which of `true` are in `found` with the same words and type, bool [entity]."""
    if not len(found.first):
        return np.zeros(len(true.first), bool)
    place = np.minimum(np.searchsorted(found.first, true.first), len(found.first) - 1)
    same = [getattr(found, name)[place] == getattr(true, name) for name in ("first", "last", "type")]
    return np.all(same, axis=0)


def _text_of(gold: np.ndarray) -> np.ndarray:
    """The text of each word, int64 [word]."""
    _, begins = parted(gold)
    if not begins[:1].all():
        raise CompressError("expected gold labels that say where texts begin, found none at the first word")
    return np.cumsum(begins) - 1


def _with_mistaken(counts: np.ndarray, *, base: bool) -> np.ndarray:
    """With two more texts of mean length and number of entities, all right but for one word, and the entity that it is in:
    of the first text for every base, of the second for every other. Not a whole text: models that hardly differ do by a word."""
    entities, words = (max(round(float(counts[:, column].mean()) / part), 1) for column, part in ((1, 2), (3, 1)))
    right = [entities, 2 * entities, words, words]
    wrong = [entities - 1, 2 * entities, words - 1, words]
    return np.concatenate([counts, [wrong, right] if base else [right, wrong]])
