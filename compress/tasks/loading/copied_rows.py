"""Refuse a reported split that is mostly a copy of train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import CompressError
from ..data import Split
from .tuning import normalize_texts


def check_reported(train: Split, reported: Mapping[str, Split], places: Mapping[str, str]) -> None:
    """Raise `CompressError` if more than half of a reported split's examples are in train, with the same label; those without any text do
    not count. `places`: where each split is from."""
    known = set(_examples(train)) if reported else set()
    for name, split in reported.items():
        copied = sum(text.strip() != "" and (text, label) in known for text, label in _examples(split))
        if 2 * copied > len(split):
            raise CompressError(
                f"{places[name]}: {copied:,} of its {len(split):,} examples are also in train, with the same label, which models learn by "
                "heart; expected other examples to report scores on: leave them out of train, or name another file"
            )


def _examples(split: Split) -> list[tuple[str, Any]]:
    """Return for each example its texts and its label, equal for examples that models cannot tell apart."""
    labels = split.labels[:, 0] if split.ranks_groups or split.has_choices else split.labels
    return [(text, label.tobytes()) for text, label in zip(normalize_texts(split), labels, strict=True)]
