"""A split's columns as read, unchecked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...files.tabular import label_text
from ...spec.task import TaskSpec
from .tables import Table, label_values
from .text_columns import text_columns


@dataclass(frozen=True)
class Rows:
    """One split as read.

    `aliases` maps labels in the file to the task's names; `declared`: names in id order declared by the data set; `unread`: a column of
    texts that the task does not name; `notes`: how labels were read; `word_numbers`: like `numbers`, for each text's words, if each has its
    own line; `remedy`: what to do about a label that the task does not know.
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
    word_numbers: Sequence[Sequence[int]] | None = None
    remedy: str = ""

    @classmethod
    def of(cls, table: Table, spec: TaskSpec) -> Rows:
        """Return the columns of a file that the task names. Raises `CompressError` if one is missing."""
        texts = text_columns(spec, table.columns, table.column)
        labels = label_values(table, spec.label)
        words, remedy = table.word_numbers, _unknown_label(spec)
        return cls(table.place, table.unit, table.numbers, texts, labels, word_numbers=words, remedy=remedy)

    def __len__(self) -> int:
        return len(self.labels)

    def names(self) -> list[str]:
        """Return labels as strings, with `aliases` applied."""
        written = [label_text(value) for value in self.labels]
        aliases = self.aliases
        return written if aliases is None else [aliases.get(name, name) for name in written]

    def of_word(self, row: int, word: int, problem: str, column: str | None = None) -> tuple[int | str, str]:
        """Return a problem with a word, for `refuse`: (the word's own line, problem) or (the text's line, problem with the word's number).
        `row` and `word` count from 0."""
        where = "" if column is None else f"{column}: "
        if self.word_numbers is not None:
            return self.word_numbers[row][word], f"{where}{problem}"
        return self.numbers[row], f"{where}word {word + 1}: {problem}"


def _unknown_label(spec: TaskSpec) -> str:
    """Return what to do about an unknown label in the user's own files."""
    if spec.files is None:
        return ""
    if spec.file is None:
        return "; the labels are those of train: correct the row, or list all as `labels` in a task file"
    if spec.labels is None:
        return f"; the labels are those of train: correct the row, or list all as `labels` in {spec.file}"
    return f"; the labels are those in {spec.file}: correct the row, or add it to `labels` there"
