"""Questions with endings as input of `predict`: on the command line, a line each, or as rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import CompressError
from ...runtime.chooser import check_question
from ...runtime.passages import NO_SCORE
from ...spec.kinds import KINDS
from .answers import Answered
from .rows import Row, value_of

if TYPE_CHECKING:
    from ...runtime.kinds import Chosen
    from ...tasks.reading.choices import Ending

Question = tuple[str, list[str]]
CONTEXT, ENDINGS = "context", "endings"  # columns, if nothing names them


def given_question(texts: list[str], pair: list[str] | None) -> list[Question]:
    """Return one context and its endings. CompressError: several contexts, or fewer than two endings."""
    if len(texts) != 1 or pair is None or len(pair) < 2:
        raise CompressError(
            f"--pair: expected one text and at least two endings, each with --pair; found {len(texts)} and "
            f"{len(pair or [])}"
        )
    return [(texts[0], pair)]


def question_in(line: str, number: int) -> Question:
    """Parse a line of stdin: the context, then its endings, separated by tabs."""
    context, *endings = line.split("\t")
    if len(endings) < 2:
        raise CompressError(
            f"stdin:{number}: expected a context and at least two endings, separated by tabs; found {line[:40]!r}"
        )
    return context, endings


def question_columns(own: tuple[str, ...] | None, text: str | None, pair: str | None) -> tuple[str, ...]:
    """Return the columns of a file, the last for the endings: those that the options name, else the bundle's `own`."""
    context, endings = (",".join(own[:-1]), own[-1]) if own else (CONTEXT, ENDINGS)
    return (context if text is None else text, endings if pair is None else pair)


def endings_in(names: tuple[str, ...], row: Row) -> list[Ending]:
    """Return the endings in a row, with the names that labels may use for them. CompressError: there are none."""
    from ...tasks.reading.choices import endings_of
    from ...tasks.reading.text_columns import ending_columns, ending_values

    for name in ending_columns(names[-1], row.values):
        value_of(row, name, "--pair")
    (value,) = ending_values(names[-1], row.values, lambda name: [row.values[name]])
    endings = endings_of(value, names[-1])
    if isinstance(endings, str):
        raise CompressError(f"{row.place}: {endings}")
    return endings


def question_of(names: tuple[str, ...], row: Row, endings: Sequence[Ending]) -> Question:
    """Return the context in a row, and its `endings`, each after its beginning."""
    text = names[0]
    columns = [text] if text in row.values else [part.strip() for part in text.split(",")]
    context, *begins = (value_of(row, name, "--text") for name in columns)
    for name, part in zip(columns, (context, *begins), strict=True):
        if not isinstance(part, str):
            raise CompressError(f"{row.place}: {name}: expected text, found {type(part).__name__}")
    whole = [" ".join([*begins, ending]) for _, ending in endings]
    check_question(f"{row.place}: ", context, whole)
    return context, whole


def place_in(row: Row, endings: Sequence[Ending], label: str) -> int:
    """Return the place of the right one of the row's `endings`, by the column `label`."""
    from ...tasks.reading.choices import ending_index

    place = ending_index(value_of(row, label, "--label"), endings, label)
    if isinstance(place, str):
        raise CompressError(f"{row.place}: {place}")
    return place


class AnsweredQuestions(Answered):
    """Answers questions and scores them by the places of the right endings."""

    def __init__(self, model: Any, columns: tuple[str, ...], label: str | None) -> None:
        super().__init__(model, columns, label)
        self._outputs: list[tuple[float, ...]] = []

    def read(self, row: Row) -> tuple[Question, int | None]:
        endings = endings_in(self._columns, row)
        gold = None if self._label is None else place_in(row, endings, self._label)
        return question_of(self._columns, row, endings), gold

    def add(self, row: Row, answer: Chosen) -> None:
        if self._label is not None:
            self._outputs.append(answer.probabilities)

    def summary(self) -> str:
        """Return the scores. Questions may have fewer endings than others, hence the padding."""
        import numpy as np

        outputs = np.full((len(self._outputs), max(map(len, self._outputs))), NO_SCORE)
        for row, probabilities in zip(outputs, self._outputs, strict=True):
            row[: len(probabilities)] = probabilities
        return self.scored(KINDS["choice"].metrics[:1], outputs, np.array(self._gold))
