"""A split's columns as they were read, unchecked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compress.spec.task import TaskSpec
from compress.tabular import label_text

from .tables import Table, label_values
from .text_columns import text_columns


@dataclass(frozen=True)
class Rows:
    """One split as read.

    `aliases` maps labels as the file writes them to the task's names; `declared` are names in id order that the
    data set itself gives; `unread` is a column of texts that the task does not name; `notes` say how its labels were read;
    `word_numbers` are those of each text's words, as `numbers`, where each has a line of its own; `way_out` is what to do about a label
    that the task does not know.
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
    way_out: str = ""

    @classmethod
    def of(cls, table: Table, spec: TaskSpec) -> Rows:
        """The columns of a file that the task names. Raises `CompressError` where it lacks one."""
        texts = text_columns(spec, table.columns, table.column)
        labels = label_values(table, spec.label)
        words, way_out = table.word_numbers, _unknown_label(spec)
        return cls(table.place, table.unit, table.numbers, texts, labels, word_numbers=words, way_out=way_out)

    def __len__(self) -> int:
        return len(self.labels)

    def names(self) -> list[str]:
        """Labels as strings, by the task's names where the file has its own."""
        written = [label_text(value) for value in self.labels]
        aliases = self.aliases
        return written if aliases is None else [aliases.get(name, name) for name in written]

    def of_word(self, row: int, word: int, problem: str, column: str | None = None) -> tuple[int | str, str]:
        """What is wrong with a text's word, both counted from 0, as `refuse` takes it: by its own line, or as a word of the text's."""
        where = "" if column is None else f"{column}: "
        if self.word_numbers is not None:
            return self.word_numbers[row][word], f"{where}{problem}"
        return self.numbers[row], f"{where}word {word + 1}: {problem}"


def _unknown_label(spec: TaskSpec) -> str:
    """What to do about a label of a file of the user's own."""
    if spec.files is None:
        return ""
    if spec.file is None:
        return "; the labels are those of train: correct the row, or list all as `labels` in a task file"
    if spec.labels is None:
        return f"; the labels are those of train: correct the row, or list all as `labels` in {spec.file}"
    return f"; the labels are those in {spec.file}: correct the row, or add it to `labels` there"
