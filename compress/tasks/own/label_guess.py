"""Guess which column of a user's file holds the labels: of those that may be classes, the one that the words of the texts predict."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

from ...errors import CompressError
from ...files.tabular import flag, is_number, label_columns, label_text, list_names
from ...spec.kinds import KindName
from ..kinds.classification import MOST_UNLISTED_LABELS
from ..kinds.embedding import is_blank
from ..reading.number_texts import are_scores, relevance_of
from ..reading.tables import Table, no_examples

_ROWS = 1000  # for a guess, from anywhere in the file, since files may be sorted by their labels, or alternate them
_FEW_ROWS = 200  # up to these, each row is predicted from all others; half of them are too few to learn from
_WORDS = 50  # of each text
_DEVIATIONS = 3.0  # by which a column must be predicted better than by its most frequent value
_SIMILAR = 0.5  # of the best share: another column is predicted about as well


def class_columns(table: Table, texts: set[str | None]) -> list[str]:
    """Return the columns, other than the texts, that may be classes: a few distinct values, repeated."""
    return [name for name, values in table.columns.items() if name not in texts and _may_be_classes(values)]


def guess_scores(table: Table, usual: Sequence[str], texts: set[str | None], kind: KindName) -> str | None:
    """Return the column, other than the texts, that holds scores: most values are numbers, not all the same. The first of the `usual` ones
    is preferred, then the last with few values for relevances and with a decimal point for others, then the last whose numbers recur, as
    those of rows do not. None if there is none."""
    read = relevance_of if kind == "ranking" else lambda value: value
    numbers = {
        name: [value for value in map(read, values) if not isinstance(value, bool) and is_number(str(value))]
        for name, values in table.columns.items()
        if name not in texts
    }
    scores = {
        name: values
        for name, values in numbers.items()
        if 2 * len(values) > sum(not is_blank(value) for value in table.columns[name]) and len({*map(str, values)}) > 1
    }
    named = next((name for name in usual if name in scores), None)
    likely = (
        [name for name in class_columns(table, texts) if name in scores]
        if kind == "ranking"
        else [name for name, values in scores.items() if are_scores(values)]
    )
    recurring = [name for name, values in scores.items() if len({*map(str, values)}) < len(values)]
    return named or next((columns[-1] for columns in (likely, recurring, list(scores)) if columns), None)


def _may_be_classes(values: Sequence[Any]) -> bool:
    different = len({label_text(value) for value in values})
    return 2 <= different <= min(MOST_UNLISTED_LABELS, len(values) // 2)


def guess_label(table: Table, columns: Sequence[str], text: str | None, kind: KindName | None) -> str:
    """Return all `columns` if they are of 0 and 1, since a text may then have several labels. Otherwise return the one that the words of
    `text` predict; where several are predicted about as well, the last, but for columns of 0 and 1 that follow from another, such as one
    for each class beside the class; where none is predicted, the last, unless it has more than twice as many values as another, as names
    and dates have beside classes. Of another `kind`, return the last: scores and sets of labels have many values. Names with commas cannot
    be among several.

    Raises `CompressError` if there is none.
    """
    if not table.columns:
        raise no_examples(table.place)
    if not columns:
        raise CompressError(
            f"{table.place}: no column looks like labels; name one of {list_names(table.columns)} with --label"
        )
    flags = {name for name in columns if all(flag(value) is not None for value in table.columns[name])}
    joined = ",".join(columns)
    if kind in (None, "multilabel") and flags == {*columns}:
        return joined if label_columns(joined, table.columns) == tuple(columns) else columns[-1]
    if kind not in (None, "classification"):
        return columns[-1]
    if text is None:
        return _last_of_few_values(table, columns)
    rows = Random(0).sample(range(len(table.columns[text])), min(_ROWS, len(table.columns[text])))
    words = [str(table.columns[text][row]).lower().split()[:_WORDS] for row in rows]
    shares = {name: predicted_share(words, [label_text(table.columns[name][row]) for row in rows]) for name in columns}
    if not (best := max(shares.values())):
        return _last_of_few_values(table, columns)
    similar = [name for name in columns if shares[name] >= _SIMILAR * best]
    classes = [name for name in similar if name not in flags]
    return [name for name in similar if name in classes or not any(_follows(table, name, one) for one in classes)][-1]


def _last_of_few_values(table: Table, columns: Sequence[str]) -> str:
    """Return the last column; if it has more than twice as many values as another, the last of those with the fewest."""
    counts = {name: len(set(map(label_text, table.columns[name]))) for name in columns}
    fewest = min(counts.values())
    return (
        columns[-1] if counts[columns[-1]] <= 2 * fewest else [name for name in columns if counts[name] == fewest][-1]
    )


def _follows(table: Table, name: str, other: str) -> bool:
    """Whether the value of one column is the same wherever that of the other is."""
    pairs = set(zip(*(map(label_text, table.columns[column]) for column in (name, other)), strict=True))
    return len(pairs) == len({value for _, value in pairs})


def predicted_share(texts: Sequence[Sequence[str]], labels: Sequence[str]) -> float:
    """Return by how much naive Bayes over words predicts labels better than their most frequent one does, as a share of what that leaves; 0
    where the difference may be chance. It learns on every other text and predicts the rest; of few texts, it predicts each from all
    others."""
    few = len(texts) <= _FEW_ROWS
    rows = [({*text}, label) for text, label in zip(texts, labels, strict=True)]
    learnt, rest = (rows, rows) if few else (rows[::2], rows[1::2])
    frequency, words = Counter(label for _, label in learnt), defaultdict[str, Counter[str]](Counter)
    for text, label in learnt:
        words[label].update(text)
    right = 0
    for text, label in rest:
        if few:
            frequency[label] -= 1
            words[label].subtract(text)
        right += _most_probable(text, frequency, words) == label
        if few:
            frequency[label] += 1
            words[label].update(text)
    constant = max(Counter(label for _, label in rest).values(), default=0)
    spread = math.sqrt(constant * (len(rest) - constant) / max(len(rest), 1))
    gain = right - constant
    return gain / (len(rest) - constant) if gain > _DEVIATIONS * spread else 0.0


def _most_probable(text: set[str], frequency: Counter[str], words: dict[str, Counter[str]]) -> str:
    """Return the most probable label of the words, by counts of texts with each label, and of each word in these."""
    known = {word for word in text if any(counts[word] for counts in words.values())}

    def log_probability(label: str) -> float:
        counts, total = words[label], frequency[label]
        return math.log(total) + sum(math.log((counts[word] + 1) / (total + 2)) for word in known)

    return max((label for label, count in frequency.items() if count), key=log_probability)
