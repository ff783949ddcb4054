"""Unique names within one page: of its regions for screen readers, and of anchors."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, count


class Names:
    """Hands out each name once; repeated ones get ` (2)` or `-2` appended."""

    def __init__(self) -> None:
        self._regions: set[str] = set()
        self._anchors: set[str] = set()

    def region(self, *parts: str) -> str:
        name = ": ".join(filter(None, parts))
        return _first_free(self._regions, name, lambda number: f"{name} ({number})")

    def anchor(self, text: str) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"
        return _first_free(self._anchors, slug, lambda number: f"{slug}-{number}")


def _first_free(taken: set[str], name: str, numbered: Callable[[int], str]) -> str:
    """Return the name, or a numbered one that is not taken, and mark it as taken."""
    free = next(each for each in chain([name], map(numbered, count(2))) if each not in taken)
    taken.add(free)
    return free
