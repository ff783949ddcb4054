"""Metrics of a label per word, on weighted texts. Imports numpy alone.

Gold labels of all texts' words are in one array, int64 [word]; the first word of each text has the bitwise complement of its label id, so
that texts can be separated again: `concatenate_labels` and `split_labels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import CompressError
from .correlation import draws
from .headline import FEWEST, Headline, Pairs, check_lengths, check_names

OUTSIDE = "O"  # the label of a word outside entities
ENTITY_METRICS = ("entity_f1", "entity_f1_strict")
TAG_METRICS = (*ENTITY_METRICS, "accuracy")


def concatenate_labels(texts: Sequence[np.ndarray]) -> np.ndarray:
    """Return int64 [word] from the label ids of each text's words; texts without words disappear."""
    parts = [np.array(ids, np.int64) for ids in texts if len(ids)]
    for ids in parts:
        ids[0] = ~ids[0]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def split_labels(gold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the label ids, int64 [word], and which words begin a text, bool [word]."""
    gold = np.asarray(gold, np.int64)
    return np.where(gold < 0, ~gold, gold), gold < 0


def are_entities(names: Sequence[str]) -> bool:
    """Whether the labels are those of entities: `O`, `B-TYPE` and `I-TYPE`."""
    return (
        OUTSIDE in names
        and len(names) > 1
        and all(name == OUTSIDE or (name[:2] in ("B-", "I-") and len(name) > 2) for name in names)
    )


def entity_metric(metrics: Sequence[str]) -> str | None:
    """Return the first entity metric, or None."""
    return next((name for name in metrics if name in ENTITY_METRICS), None)


@dataclass(frozen=True)
class Chunks:
    """Entities in the words of all texts, in order: index of the first and last word, and type, int64 [entity]."""

    first: np.ndarray
    last: np.ndarray
    type: np.ndarray


@dataclass(frozen=True)
class TypeScore:
    """Scores in points. `entities`: number of gold ones, `given`: number of predicted ones."""

    precision: float
    recall: float
    f1: float
    entities: int
    given: int


@dataclass(frozen=True)
class TagsHeadline(Headline):
    """Headline for outputs [word, label]; the label with the largest is predicted. `gold` as from `concatenate_labels`; `names`: of the
    labels.

    `entity_f1`: of entities of all types, right if type and both borders are (Tjong Kim Sang & De Meulder 2003, CoNLL, §2.3); an `I-` that
    does not follow a word of its type begins one. `entity_f1_strict`: only of entities that begin with `B-`, as in seqeval's
    `mode="strict"` with `scheme=IOB2`. `accuracy`: of words. Resamples draw texts, since errors within a text are correlated.
    """

    metrics: tuple[str, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        check_names(self.metrics, TAG_METRICS)
        of_entities = entity_metric(self.metrics)
        if of_entities and not are_entities(self.names):
            raise CompressError(
                f"metric `{of_entities}` counts entities, with labels O, B-… and I-…, found {list(self.names[:8])}; take `accuracy`"
            )

    def __call__(self, outputs: np.ndarray, gold: np.ndarray) -> float:
        check_lengths(gold, [outputs])
        return float(self._points(self._counts(outputs, gold).sum(axis=0, keepdims=True).astype(np.float64))[0])

    def differ(self, base: np.ndarray, other: np.ndarray) -> np.ndarray:
        return base.argmax(axis=1) != other.argmax(axis=1)

    def correct(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray | None:
        return None  # McNemar's test assumes independence, which words of one text lack

    def count_changed(self, pairs: Pairs, gold: np.ndarray) -> int:
        words = np.any([self.differ(base, other) for base, other in pairs], axis=0)
        return len(np.unique(_text_of(gold)[words]))

    def resampled(self, pairs: Pairs, gold: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
        """Return points on resampled texts. If models differ on too few texts to be told apart, two are added, each with a word that one
        model labels wrongly."""
        counts = [self._counts(outputs, gold) for pair in pairs for outputs in pair]
        if self.count_changed(pairs, gold) < FEWEST:
            counts = [self._with_mistaken(each, base=index % 2 == 0) for index, each in enumerate(counts)]
        parts = [
            np.stack([self._points(weights @ each) for each in counts])
            for weights in draws(len(counts[0]), samples, rng)
        ]
        return np.concatenate(parts, axis=1)

    def _counts(self, outputs: np.ndarray, gold: np.ndarray) -> np.ndarray:
        """Return int64 [text, 2 · metric]: for entities, the number given correctly, and given plus gold; for words, the number right, and
        all."""
        ids, begins = split_labels(gold)
        predictions, text = outputs.argmax(axis=1), _text_of(gold)
        columns: list[np.ndarray] = []
        for name in self.metrics:
            right, counted = np.flatnonzero(predictions == ids), np.arange(len(ids))
            if name in ENTITY_METRICS:
                strict = name == "entity_f1_strict"
                true, predicted = (chunks(labels, begins, self.names, strict=strict) for labels in (ids, predictions))
                right, counted = true.first[_occur_in(true, predicted)], np.append(true.first, predicted.first)
            columns += [np.bincount(text[words], minlength=int(text[-1]) + 1) for words in (right, counted)]
        return np.stack(columns, axis=1)

    def _points(self, counts: np.ndarray) -> np.ndarray:
        """Return points [sample] from summed counts [sample, 2 · metric]."""
        shares = counts[:, ::2] / np.maximum(counts[:, 1::2], 1)
        return 100 * np.mean(shares * self._item_weights, axis=1)

    def _with_mistaken(self, counts: np.ndarray, *, base: bool) -> np.ndarray:
        """Return counts with two more texts of mean length and number of entities, all right except one word and its entity: in the first
        text for every base, in the second for every other. Only one word, because models that hardly differ differ by a word, not by a
        text."""
        right = counts[0].copy()
        right[::2] = np.maximum(np.round(counts[:, 1::2].mean(axis=0) / self._item_weights), 1)
        right[1::2] = right[::2] * self._item_weights
        wrong = right.copy()
        wrong[::2] -= 1
        return np.concatenate([counts, [wrong, right] if base else [right, wrong]])

    @property
    def _item_weights(self) -> np.ndarray:
        """How often a right item is counted, int64 [metric]: an entity twice, as gold and as given."""
        return np.array([2 if name in ENTITY_METRICS else 1 for name in self.metrics])


def chunks(ids: np.ndarray, begins: np.ndarray, names: Sequence[str], *, strict: bool = False) -> Chunks:
    """Return the entities of labels `ids` [word], in texts that begin where `begins` is true. `strict`: only those that begin with `B-`."""
    types = {name: index for index, name in enumerate(entity_types(names))}
    of_label = np.array([types.get(name[2:], -1) if name != OUTSIDE else -1 for name in names])
    starts = np.array([name.startswith("B-") for name in names])[ids]
    kind = of_label[ids]
    is_inside = np.zeros(len(ids), bool)  # whether a word continues the previous word's entity
    is_inside[1:] = (kind[1:] == kind[:-1]) & (kind[1:] >= 0) & ~starts[1:] & ~begins[1:]
    first = np.flatnonzero((kind >= 0) & ~is_inside)
    last = np.flatnonzero((kind >= 0) & ~np.append(is_inside[1:], False))
    kept = starts[first] if strict else slice(None)
    return Chunks(first[kept], last[kept], kind[first][kept])


def entity_types(names: Sequence[str]) -> tuple[str, ...]:
    """Return the sorted entity types of label names."""
    return tuple(sorted({name[2:] for name in names if name != OUTSIDE}))


def type_scores(
    outputs: np.ndarray, gold: np.ndarray, names: Sequence[str], *, strict: bool = False
) -> dict[str, TypeScore]:
    """Return the scores of each entity type; a share of nothing is 0. `strict` as in `chunks`."""
    ids, begins = split_labels(gold)
    true, predicted = (chunks(labels, begins, names, strict=strict) for labels in (ids, outputs.argmax(axis=1)))
    right = true.type[_occur_in(true, predicted)]
    types = entity_types(names)
    numbers = [np.bincount(kinds, minlength=len(types)).tolist() for kinds in (right, true.type, predicted.type)]
    return {name: _score(*counts) for name, *counts in zip(types, *numbers, strict=True)}


def entity_flips(base: np.ndarray, other: np.ndarray, gold: np.ndarray, names: Sequence[str]) -> tuple[int, int]:
    """Return the number of entities predicted by only one of two models, and by at least one."""
    begins = split_labels(gold)[1]
    base_entities, other_entities = (chunks(outputs.argmax(axis=1), begins, names) for outputs in (base, other))
    common = int(_occur_in(base_entities, other_entities).sum())
    every = len(base_entities.first) + len(other_entities.first) - common
    return every - common, every


def _score(right: int, entities: int, predicted: int) -> TypeScore:
    precision, recall, f1 = (
        100 * part / max(of, 1)
        for part, of in ((right, predicted), (right, entities), (2 * right, entities + predicted))
    )
    return TypeScore(precision, recall, f1, entities, predicted)


def _occur_in(entities: Chunks, others: Chunks) -> np.ndarray:
    """Return which of `entities` are in `others` with the same words and type, bool [entity]."""
    if not len(others.first):
        return np.zeros(len(entities.first), bool)
    place = np.minimum(np.searchsorted(others.first, entities.first), len(others.first) - 1)
    same = [getattr(others, name)[place] == getattr(entities, name) for name in ("first", "last", "type")]
    return np.all(same, axis=0)


def _text_of(gold: np.ndarray) -> np.ndarray:
    """Return the text of each word, int64 [word]."""
    _, begins = split_labels(gold)
    if not begins[:1].all():
        raise CompressError("expected gold labels that say where texts begin, found none at the first word")
    return np.cumsum(begins) - 1
