"""Names within one page of which no two are alike: of its regions for those who hear it, and of the places to link to."""

from __future__ import annotations

import re
from collections import Counter


class Names:
    """Gives each name once; the second of a kind has ` (2)` or `-2` after it."""

    def __init__(self) -> None:
        self._regions: Counter[str] = Counter()
        self._anchors: Counter[str] = Counter()

    def region(self, *parts: str) -> str:
        name = ": ".join(filter(None, parts))
        self._regions[name] += 1
        return name if self._regions[name] == 1 else f"{name} ({self._regions[name]})"

    def anchor(self, text: str) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "part"
        self._anchors[slug] += 1
        return slug if self._anchors[slug] == 1 else f"{slug}-{self._anchors[slug]}"
