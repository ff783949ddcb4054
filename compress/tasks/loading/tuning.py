"""Split a tuning split off train, for checkpoint choice, early stopping and calibration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import CompressError
from ...files.tabular import CONLL
from ...metrics.ranks import queries_of
from ...spec.kinds import KINDS
from ...spec.task import TaskSpec
from ..data import Split
from ..kinds import TASK_KINDS
from ..kinds.ranking import varied_queries
from ..reading.tables import format_count
from .coverage import cover_classes
from .grouping import NOWHERE, context_groups, copies, source_groups
from .words import words_of

SEED = b"tuning-2"
_PARTS = 20  # a phrase or text in more than this fraction of the split counts as common, if necessary
_NOT_APART = (
    "the tuning split could not keep common sources apart, as too many texts of train share their words: scores on it look better than on "
    "new texts; name a file of other texts with --tuning, or as `tuning` in the task file"
)


class Carved(NamedTuple):
    """Indices of examples, in file order, int64: `train` excludes `tuning`. `notes`: on what could not be kept apart."""

    train: np.ndarray
    tuning: np.ndarray
    notes: tuple[str, ...] = ()


def carve(spec: TaskSpec, split: Split, place: str) -> Carved:
    """Return the examples to train on and those held out for tuning.

    Examples with a common source (`source_groups`) are drawn together or not at all, ordered by a keyed hash of their texts: the same ones
    in every process, whatever the numpy version or order of the file. Examples in several groups stay in train, and so do groups larger
    than the split. Classes keep their shares as far as whole groups allow: none exceeds its quota, some may fall short. If that fills less
    than half of the split, what many texts share no longer groups them; finally, only copies of a text stay together. Classes that are
    then missing take the place of others (`cover_classes`). Questions on one context are never separated: if all groups are too large, the
    smallest is drawn. Raises `CompressError` if train is too small to spare any example.
    """
    if KINDS[spec.kind].grouped:
        return carve_queries(spec, split, place)
    goal = max(min(spec.tuning_examples, int(len(split) * spec.tuning_fraction)), 1)
    strata = TASK_KINDS[spec.kind].labels.strata(split.labels)
    quotas = _quotas(Counter(strata), goal)
    drawn: list[list[int]] = []
    groups: list[list[int]] = []
    sources: list[list[int]] = []
    for level, groups in enumerate(_groupings(split, goal)):
        sources = sources if level else groups
        drawn = _draw(groups, strata, quotas)
        if 2 * sum(map(len, drawn)) >= goal:
            break
    if not drawn and split.labels_spans and len(groups) > 1:
        drawn = [min(groups, key=len)]
    if not drawn:
        raise CompressError(
            f"{place}: {format_count(len(split), 'example')} {_is_or_are(len(split))} too few to hold some out for tuning; "
            f"expected at least two different {_sources(split, place)}"
        )
    held = np.zeros(len(split), dtype=bool)
    for rows in cover_classes(groups, drawn, strata, goal):
        held[rows] = True
    return Carved(np.flatnonzero(~held), np.flatnonzero(held), () if _has_only_whole(held, sources) else (_NOT_APART,))


def carve_queries(spec: TaskSpec, split: Split, place: str) -> Carved:
    """Like `carve`, for passages of queries or endings of questions: all of a query's are drawn together, with those of queries, or
    contexts, of the same words.

    Queries are drawn in the order of a hash of their words while they fit in the split; if none fits, the smallest. Queries whose passages
    are all equally relevant cannot be scored, and stay in train. Passages shared by several queries are common, and do not group them.
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
    if all(held[rows].all() for rows in ranked):  # leave one to train on
        held[ranked[-1]] = False
    return Carved(np.flatnonzero(~held), np.flatnonzero(held))


def _sources(split: Split, place: str) -> str:
    """Return in words what two of are needed."""
    if split.labels_spans:
        return "contexts"
    if not split.labels_words:
        return "texts of one label"
    return "texts of the same labels" + (
        ", with a blank line after each" if Path(place).suffix.lower() in CONLL else ""
    )


def _too_few(split: Split, distinct: int) -> str:
    if split.has_choices:
        questions = len(queries_of(split.labels))
        return (
            f"{format_count(questions, 'question')} on {format_count(distinct, 'context')} {_is_or_are(questions)} too few to "
            "hold some out for tuning; expected at least two contexts"
        )
    return (
        f"{format_count(len(split), 'passage')} of {format_count(distinct, 'query', 'queries')} {_is_or_are(len(split))} too "
        "few to hold some out for tuning; expected at least two queries that have passages of different "
        "relevance"
    )


def _is_or_are(count: int) -> str:
    return "is" if count == 1 else "are"


def normalize_texts(split: Split) -> list[str]:
    """Return one string per example, equal for texts that differ only in case and spacing."""
    columns = [[" ".join(text.lower().split()) for text in column] for column in split.texts]
    return ["\t".join(texts) for texts in zip(*columns, strict=True)]


def _groupings(split: Split, goal: int) -> Iterator[list[list[int]]]:
    """Yield rows of each group, in the order in which groups are drawn; coarse groups first."""
    distinct, index = copies(split)
    digests = [_digest(text.encode("utf-8", "surrogatepass")) for text in distinct]
    if split.labels_spans:
        yield _in_order(context_groups(split), index, digests)
        return
    for most in (goal, goal // _PARTS):
        yield _in_order(source_groups(split, most), index, digests)
    yield _in_order(index, index, digests)


def _in_order(groups: np.ndarray, index: np.ndarray, digests: list[bytes]) -> list[list[int]]:
    """Return groups ordered by the digest of each group's lowest digest; the lowest itself would put large groups first."""
    rows: dict[int, list[int]] = defaultdict(list)
    for row in np.flatnonzero(groups != NOWHERE).tolist():
        rows[int(groups[row])].append(row)
    return sorted(rows.values(), key=lambda group: _digest(min(digests[index[row]] for row in group)))


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16, key=SEED).digest()


def _quotas(sizes: Counter[int], goal: int) -> dict[int, int]:
    """Return `goal` divided in proportion to the class sizes, by largest remainder; at least one example of each class is left."""
    total = sum(sizes.values())
    quotas = {key: goal * size // total for key, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda key: (-(goal * sizes[key] % total), key))
    for key in by_remainder[: goal - sum(quotas.values())]:
        quotas[key] += 1
    return {key: min(quota, sizes[key] - 1) for key, quota in quotas.items()}


def _has_only_whole(held: np.ndarray, groups: list[list[int]]) -> bool:
    """Whether all `held` examples are in groups of which all are held."""
    return int(held.sum()) == sum(len(rows) for rows in groups if held[rows].all())


def _draw(groups: list[list[int]], strata: list[int], quotas: dict[int, int]) -> list[list[int]]:
    """Return the first groups that fit in the remaining quotas of all their classes."""
    left, drawn = dict(quotas), []
    for rows in groups:
        classes = Counter(strata[row] for row in rows)
        if all(count <= left[key] for key, count in classes.items()):
            drawn.append(rows)
            for key, count in classes.items():
                left[key] -= count
        if not any(left.values()):
            break
    return drawn
