"""Carve the tuning split from train: for checkpoint choice, early stopping and calibration."""

from __future__ import annotations

from collections import defaultdict
from hashlib import blake2b

import numpy as np

from compress.errors import CompressError
from compress.spec.task import TaskSpec

from .data import Split

SEED = b"tuning-1"


def carve(spec: TaskSpec, split: Split, place: str) -> tuple[np.ndarray, np.ndarray]:
    """Indices, in file order, of (train without tuning, tuning).

    Examples are drawn by a keyed hash of their text: the same ones in every process, whatever numpy's version or the
    order of the file, and copies of one text are drawn together, so no text stands in both parts.
    Classes keep their shares. Raises `CompressError` when train is too small to spare any example.
    """
    goal = min(spec.tuning_examples, int(len(split) * spec.tuning_fraction))
    strata = split.labels if spec.kind == "classification" else np.zeros(len(split), dtype=np.int64)
    groups = _copies(split)
    by_class: dict[int, list[list[int]]] = defaultdict(list)
    for _, rows in sorted(groups.items()):
        by_class[int(strata[rows[0]])].append(rows)
    quotas = _quotas({key: sum(map(len, rows)) for key, rows in by_class.items()}, max(goal, 1))
    drawn = [row for key, rows in sorted(by_class.items()) for row in _draw(rows, quotas[key])]
    if not drawn:
        raise CompressError(
            f"{place}: {len(split):,} examples are too few to hold some out for tuning; "
            "expected two different texts of one label at least"
        )
    held = np.zeros(len(split), dtype=bool)
    held[drawn] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def normalized(split: Split) -> list[str]:
    """One string per example, the same for texts that differ in case and spacing only."""
    columns = [[" ".join(text.lower().split()) for text in column] for column in split.texts]
    return ["\t".join(texts) for texts in zip(*columns, strict=True)]


def _copies(split: Split) -> dict[bytes, list[int]]:
    groups: dict[bytes, list[int]] = defaultdict(list)
    for index, text in enumerate(normalized(split)):
        groups[blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=SEED).digest()].append(index)
    return groups


def _quotas(sizes: dict[int, int], goal: int) -> dict[int, int]:
    """`goal` divided in proportion to the class sizes, by largest remainder."""
    total = sum(sizes.values())
    quotas = {key: goal * size // total for key, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda key: (-(goal * sizes[key] % total), key))
    for key in by_remainder[: goal - sum(quotas.values())]:
        quotas[key] += 1
    return quotas


def _draw(groups: list[list[int]], quota: int) -> list[int]:
    """Rows of the first groups that fit in `quota`; one group always stays in train."""
    drawn: list[int] = []
    for rows in groups[:-1]:
        if len(drawn) + len(rows) <= quota:
            drawn += rows
    return drawn
