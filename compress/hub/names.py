"""Names of the hub's repositories and commits."""

from __future__ import annotations

import re

_REPOSITORY = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([\w.][\w./-]*))?")


def repository(word: str) -> tuple[str, str | None] | None:
    """Return OWNER/NAME and the revision of `OWNER/NAME[@REVISION]`; None for any other word."""
    match = _REPOSITORY.fullmatch(word)
    return None if match is None or word.endswith((".yaml", ".yml")) else (match[1], match[2])


def is_commit(revision: str | None) -> bool:
    """Whether the revision is a commit, which always names the same files."""
    return re.fullmatch(r"[0-9a-f]{40}", revision or "") is not None
