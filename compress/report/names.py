"""Names within one page of which no two are alike: of its regions for those who hear it, and of the places to link to."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, count


class Names:
    """Gives each name once; the second of a kind has ` (2)` or `-2` after it."""

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
    """The name, or the numbered one that is not taken, which it then is."""
    free = next(each for each in chain([name], map(numbered, count(2))) if each not in taken)
    taken.add(free)
    return free
