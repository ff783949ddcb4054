"""Models that label words: files with a word per line, lists of words, and scores of labels of words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ...errors import CompressError
from ...files.tabular import CONLL, DELIMITERS
from ...metrics.tags import concatenate_labels
from ...runtime import LabelledWords, Tagger
from ...tasks.data import of_words
from ...tasks.kinds.tagging import TAGGING, check_words, label_ids
from ...tasks.reading.columns import Rows
from ...tasks.reading.json_lists import are_lists, is_foreign_list, json_list
from ...tasks.reading.tagged import tagged_rows
from .answers import Answered, check_text
from .rows import Row, check_encodable, value_of

if TYPE_CHECKING:
    from .answers import Text

_METRICS = ("entity_f1", "accuracy")


class WordWriter:
    """Writes texts to a file with a word per line: tabs between columns, the last of which is the predicted label."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, row: Row) -> None:
        words = zip(*row.values.values(), strict=True)
        with check_encodable(row):
            self._file.write("".join("\t".join(fields) + "\n" for fields in words) + "\n")


class AnsweredWords(Answered):
    """Answers texts or lists of words. Their labels, in the column `label`, are lists of tags or of spans."""

    model: Tagger

    def __init__(
        self,
        model: Tagger,
        path: Path,
        columns: tuple[str, ...],
        label: str | None,
        form: str,
        aggregation: str | None,
    ) -> None:
        super().__init__(model, columns, label)
        self._path, self._form, self._column = path, form, columns[0]
        self._aggregation: Any = aggregation or "first"
        self._predictions: list[list[int]] = []

    def read(self, row: Row) -> tuple[Text, np.ndarray | None]:
        value = value_of(row, self._column, "--text")
        if self._path.suffix.lower() in DELIMITERS:
            value = _parse_words(f"{row.place}: {self._column}", value)
        listed = isinstance(value, list)
        for part in value if listed else [value]:
            check_text(f"{row.place}: {self._column}", part)
        if listed and "" in value:
            own = row.word_numbers and f"{self._path}: line {row.word_numbers[value.index('')]}"
            raise CompressError(f"{own or row.place}: {self._column}: expected words, found an empty one")
        return value, None if self._label is None else self._ids(row, value, value_of(row, self._label, "--label"))

    def _ids(self, row: Row, text: Any, label: Any) -> np.ndarray:
        """Return int32 [word, 3], the first of which is the label's id."""
        words = None if row.word_numbers is None else [row.word_numbers]
        rows = Rows(str(self._path), "line", [row.number], ([text],), [label], word_numbers=words)
        return label_ids(tagged_rows(rows, self._column, str(self._label), self.model.labels), self.model.labels)[0]

    def answers(self, texts: Iterator[Text]) -> Iterator[LabelledWords]:
        return self.model.label_words(texts, aggregation=self._aggregation)  # type: ignore[arg-type]

    def cells(self, answer: LabelledWords) -> tuple[Any, float | None]:
        if self._form in CONLL:
            return [word.label for word in answer.labels], None
        return self.model.settings.kind.cells(self.model.entities(answer, aggregation=self._aggregation))

    def add(self, row: Row, answer: LabelledWords) -> None:
        if self._label is not None:
            self._predictions.append([self.model.labels.index(str(word.label)) for word in answer.labels])

    def summary(self) -> str:
        names = self.model.labels
        check_words(f"{self._path}: {self._label}", of_words(self._gold), names)
        outputs = np.eye(len(names))[np.concatenate([np.array(ids, np.int64) for ids in self._predictions])]
        return self.scored(
            TAGGING.scoring.applicable(_METRICS, names), outputs, concatenate_labels([ids[:, 0] for ids in self._gold])
        )


def _parse_words(where: str, field: Any) -> Any:
    """Return the words of a field that is a JSON list of texts; any other field unchanged, because a text may begin with a bracket.
    CompressError, whose message begins with `where`: a list of texts as Python or NumPy write it."""
    if not are_lists([field]):
        return field
    words = json_list(field)
    if isinstance(words, str) and is_foreign_list(field):
        raise CompressError(f"{where}: {words}")
    return words if isinstance(words, list) and all(isinstance(word, str) for word in words) else field
