"""A split's columns as they were read, unchecked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compress.tabular import label_text


@dataclass(frozen=True)
class Rows:
    """One split as read.

    `aliases` maps labels as the file writes them to the task's names; `declared` are names in id order that the
    data set itself gives; `unread` is a column of texts that the task does not name; `notes` say how its labels were read.
    """

    place: str
    unit: str
    numbers: Sequence[int | str]
    texts: tuple[list[Any], ...]
    labels: list[Any]
    aliases: Mapping[str, str] | None = None
    declared: tuple[str, ...] | None = None
    unread: str | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def names(self) -> list[str]:
        """Labels as strings, by the task's names where the file has its own."""
        written = [label_text(value) for value in self.labels]
        aliases = self.aliases
        return written if aliases is None else [aliases.get(name, name) for name in written]
