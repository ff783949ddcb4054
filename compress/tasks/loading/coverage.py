"""Give each class of train an example in the tuning split, where whole groups and the split's size allow it."""

from __future__ import annotations

from collections import Counter, defaultdict


def cover_classes(groups: list[list[int]], drawn: list[list[int]], strata: list[int], goal: int) -> list[list[int]]:
    """Return the `drawn` ones of `groups`, with the smallest group of each class that they miss.

    Others leave the split if it would have more than `goal` examples: of classes that have most, and never the last of a class. Each class
    keeps an example in train. `strata`: class of each example. A draw that misses no class is returned as it is.
    """
    sizes = Counter(strata)
    missing = sizes.keys() - {strata[row] for rows in drawn for row in rows}
    if not missing:
        return drawn
    groups_of: dict[int, list[list[int]]] = defaultdict(list)
    for rows in groups:
        for key in missing & {strata[row] for row in rows}:
            groups_of[key].append(rows)
    for key in sorted(missing, key=lambda key: (sizes[key], key)):
        held = _count(drawn, strata)
        spare = sizes - held
        fitting = [
            rows for rows in groups_of[key] if all(n < spare[each] for each, n in _count([rows], strata).items())
        ]
        if fitting and not held[key]:
            added = min(fitting, key=len)
            room = _make_room(drawn, strata, goal - len(added))
            drawn = drawn if room is None else [*room, added]
    return drawn


def _make_room(drawn: list[list[int]], strata: list[int], most: int) -> list[list[int]] | None:
    """Return `drawn` without enough groups to have at most `most` examples, none of them the last of a class; None if that cannot be."""
    kept, counts = list(drawn), _count(drawn, strata)
    while counts.total() > most:
        left = [min(counts[key] - n for key, n in _count([rows], strata).items()) for rows in kept]
        index = max(range(len(kept)), key=lambda index: (left[index], index), default=None)
        if index is None or not left[index]:
            return None
        counts -= _count([kept.pop(index)], strata)
    return kept


def _count(groups: list[list[int]], strata: list[int]) -> Counter[int]:
    return Counter(strata[row] for rows in groups for row in rows)
