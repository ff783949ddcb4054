"""Questions with endings as `predict` is given them: on the command line, a line each, or as rows of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import CompressError
from ..runtime.chooser import check_question
from ..spec.kinds import KINDS
from .answered import Answered
from .row_files import Row, value_of

if TYPE_CHECKING:
    from ..runtime.kinds import Chosen
    from ..tasks.choices import Ending

Question = tuple[str, list[str]]
CONTEXT, ENDINGS = "context", "endings"  # columns, where nothing names them


def given_question(texts: list[str], pair: list[str] | None) -> list[Question]:
    """One context and its endings. CompressError: several contexts, or less than two endings."""
    if len(texts) != 1 or pair is None or len(pair) < 2:
        raise CompressError(
            f"--pair: expected one text and two endings of it or more, --pair for each; found {len(texts)} and {len(pair or [])}"
        )
    return [(texts[0], pair)]


def question_in(line: str, number: int) -> Question:
    """Of a line of stdin: the context, then its endings, with tabs between."""
    context, *endings = line.split("\t")
    if len(endings) < 2:
        raise CompressError(
            f"stdin:{number}: expected a context and two endings or more with tabs between them; found {line[:40]!r}"
        )
    return context, endings


def question_columns(own: tuple[str, ...] | None, text: str | None, pair: str | None) -> tuple[str, ...]:
    """Columns of a file, the last of the endings: those that the options name, else the bundle's `own`."""
    context, endings = (",".join(own[:-1]), own[-1]) if own else (CONTEXT, ENDINGS)
    return (context if text is None else text, endings if pair is None else pair)


def endings_in(names: tuple[str, ...], row: Row) -> list[Ending]:
    """The endings in a row, with what labels may call them. CompressError: there are none."""
    from ..tasks.choices import endings_of
    from ..tasks.text_columns import ending_columns, ending_values

    for name in ending_columns(names[-1], row.values):
        value_of(row, name, "--pair")
    (value,) = ending_values(names[-1], row.values, lambda name: [row.values[name]])
    found = endings_of(value, names[-1])
    if isinstance(found, str):
        raise CompressError(f"{row.place}: {found}")
    return found


def question_of(names: tuple[str, ...], row: Row, label: str | None) -> Question:
    """The context in a row, and its endings. Also sees that the row has its label, before anything is answered."""
    text = names[0]
    columns = [text] if text in row.values else [part.strip() for part in text.split(",")]
    context, *begins = (value_of(row, name, "--text") for name in columns)
    for name, part in zip(columns, (context, *begins), strict=True):
        if not isinstance(part, str):
            raise CompressError(f"{row.place}: {name}: expected text, found {type(part).__name__}")
    endings = [" ".join([*begins, ending]) for _, ending in endings_in(names, row)]
    if label is not None:
        place_in(names, row, label)
    check_question(f"{row.place}: ", context, endings)
    return context, endings


def place_in(names: tuple[str, ...], row: Row, label: str) -> int:
    """The place of the right ending, by the column `label`."""
    from ..tasks.choices import place_of

    place = place_of(value_of(row, label, "--label"), endings_in(names, row), label)
    if isinstance(place, str):
        raise CompressError(f"{row.place}: {place}")
    return place


class AnsweredQuestions(Answered):
    """Scored by the places of the right endings."""

    def __init__(self, model: Any, columns: tuple[str, ...], label: str | None) -> None:
        super().__init__(model, columns, label)
        self._gold: list[int] = []
        self._outputs: list[list[float]] = []

    def text(self, row: Row) -> Question:
        return question_of(self._columns, row, self._label)

    def add(self, row: Row, answer: Chosen) -> None:
        if self._label is not None:
            self._gold.append(place_in(self._columns, row, self._label))
            self._outputs.append([*answer.probabilities])

    def summary(self) -> str:
        """Questions may have fewer endings than others."""
        import numpy as np

        from ..tasks import TASK_KINDS

        most = max(map(len, self._outputs))
        outputs = np.array([[*row, *[-1.0] * (most - len(row))] for row in self._outputs])
        return self.scored(TASK_KINDS["choice"], KINDS["choice"].metrics[:1], outputs, np.array(self._gold))
