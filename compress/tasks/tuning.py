"""Carve the tuning split from train: for checkpoint choice, early stopping and calibration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np

from compress.errors import CompressError
from compress.metrics.ranks import queries_of
from compress.spec.kinds import KINDS
from compress.spec.task import TaskSpec
from compress.tabular import CONLL

from .data import Split
from .grouping import NOWHERE, context_groups, copies, source_groups
from .kinds import TASK_KINDS
from .kinds.ranking import varied_queries
from .tables import counted
from .words import words_of

SEED = b"tuning-2"
_PARTS = 20  # of the split: a phrase or text that stands in more than one of them counts as common, if need be


def carve(spec: TaskSpec, split: Split, place: str) -> tuple[np.ndarray, np.ndarray]:
    """Indices, in file order, of (train without tuning, tuning).

    Examples with a source in common (`source_groups`) are drawn together or not at all, by a keyed hash of their
    texts: the same ones in every process, whatever numpy's version or the order of the file. One that belongs to
    several groups stays in train, and so does a group larger than the split. Classes keep their shares as far as
    whole groups allow: none gets more than its quota, the last one to fill up may get less. Where that leaves less than
    half of the split, what many texts share no longer groups them; at last only copies of a text stay together. Questions on one context
    are never parted: of groups that are all too large the smallest is drawn.
    Raises `CompressError` when train is too small to spare any example.
    """
    if KINDS[spec.kind].grouped:
        return carve_queries(spec, split, place)
    goal = max(min(spec.tuning_examples, int(len(split) * spec.tuning_fraction)), 1)
    strata = TASK_KINDS[spec.kind].strata(split.labels)
    quotas = _quotas(Counter(strata), goal)
    drawn: list[int] = []
    groups: list[list[int]] = []
    for groups in _groupings(split, goal):
        drawn = _draw(groups, strata, quotas)
        if 2 * len(drawn) >= goal:
            break
    if not drawn and split.labels_spans and len(groups) > 1:
        drawn = min(groups, key=len)
    if not drawn:
        raise CompressError(
            f"{place}: {counted(len(split), 'example')} {_are(len(split))} too few to hold some out for tuning; expected two different "
            f"{_sources(split, place)} at least"
        )
    held = np.zeros(len(split), dtype=bool)
    held[drawn] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def carve_queries(spec: TaskSpec, split: Split, place: str) -> tuple[np.ndarray, np.ndarray]:
    """As `carve`, of passages of queries, or endings of questions: all of a query's are drawn together, with those of queries, or contexts,
    of the same words.

    Queries are drawn in the order of a hash of their words while they fit in the split, and where none fits the smallest. Those whose
    passages are all as relevant as each other have nothing to choose by and stay in train. Passages that several queries share are
    usual, and join none.
    """
    known: dict[str, int] = {}
    query = np.array([known.setdefault(words_of(text), len(known)) for text in split.texts[0]], np.int64)
    merged = np.column_stack([split.labels[:, 0], query])
    digests = [_digest(words.encode("utf-8", "surrogatepass")) for words in known]
    ranked = sorted(varied_queries(merged), key=lambda rows: digests[query[rows[0]]])
    if len(ranked) < 2:
        raise CompressError(f"{place}: {_too_few(split, len(known))}, or a tuning split of its own")
    rows_each = len(split) / len(queries_of(split.labels)) if split.has_choices else 1
    goal = min(int(spec.tuning_examples * rows_each), int(len(split) * spec.tuning_fraction))
    held = np.zeros(len(split), dtype=bool)
    taken = 0
    for rows in ranked:
        if taken + len(rows) <= goal:
            held[rows], taken = True, taken + len(rows)
    if not held.any():
        held[min(ranked, key=len)] = True
    if all(held[rows].all() for rows in ranked):  # one is left to learn from
        held[ranked[-1]] = False
    return np.flatnonzero(~held), np.flatnonzero(held)


def _sources(split: Split, place: str) -> str:
    """Of which two are needed."""
    if split.labels_spans:
        return "contexts"
    if not split.labels_words:
        return "texts of one label"
    return "texts, with a blank line after each," if Path(place).suffix.lower() in CONLL else "texts"


def _too_few(split: Split, distinct: int) -> str:
    if split.has_choices:
        questions = len(queries_of(split.labels))
        return (
            f"{counted(questions, 'question')} on {counted(distinct, 'context')} {_are(questions)} too few to hold some out for tuning; "
            "expected two contexts at least"
        )
    return (
        f"{counted(len(split), 'passage')} of {counted(distinct, 'query', 'queries')} {_are(len(split))} too few to hold some out for "
        "tuning; expected two queries at least that have passages of different relevance"
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def normalized(split: Split) -> list[str]:
    """One string per example, the same for texts that differ in case and spacing only."""
    columns = [[" ".join(text.lower().split()) for text in column] for column in split.texts]
    return ["\t".join(texts) for texts in zip(*columns, strict=True)]


def _groupings(split: Split, goal: int) -> Iterator[list[list[int]]]:
    """Rows of each group, in the order in which groups are drawn; coarse groups first."""
    distinct, index = copies(split)
    digests = [_digest(text.encode("utf-8", "surrogatepass")) for text in distinct]
    if split.labels_spans:
        yield _in_order(context_groups(split), index, digests)
        return
    for most in (goal, goal // _PARTS):
        yield _in_order(source_groups(split, most), index, digests)
    yield _in_order(index, index, digests)


def _in_order(groups: np.ndarray, index: np.ndarray, digests: list[bytes]) -> list[list[int]]:
    """By the digest of each group's lowest digest: by the lowest itself, large groups would come early."""
    rows: dict[int, list[int]] = defaultdict(list)
    for row in np.flatnonzero(groups != NOWHERE).tolist():
        rows[int(groups[row])].append(row)
    return sorted(rows.values(), key=lambda group: _digest(min(digests[index[row]] for row in group)))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16, key=SEED).digest()


def _quotas(sizes: Counter[int], goal: int) -> dict[int, int]:
    """`goal` divided in proportion to the class sizes, by largest remainder; one example of each class is left."""
    total = sum(sizes.values())
    quotas = {key: goal * size // total for key, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda key: (-(goal * sizes[key] % total), key))
    for key in by_remainder[: goal - sum(quotas.values())]:
        quotas[key] += 1
    return {key: min(quota, sizes[key] - 1) for key, quota in quotas.items()}


def _draw(groups: list[list[int]], strata: list[int], quotas: dict[int, int]) -> list[int]:
    """Rows of the first groups of which every class fits in what is left of its quota."""
    left, drawn = dict(quotas), []
    for rows in groups:
        classes = Counter(strata[row] for row in rows)
        if all(count <= left[key] for key, count in classes.items()):
            drawn += rows
            for key, count in classes.items():
                left[key] -= count
        if not any(left.values()):
            break
    return drawn
