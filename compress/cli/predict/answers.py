"""Answers and scores of the rows of a file in `predict`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import CompressError, brief, encoded_otherwise
from ...files.tabular import flag, is_vector, label_columns, label_list, label_text
from ...runtime.kinds import ANSWER_KINDS, LabelsPrediction
from ...runtime.reading import check_unicode
from ...spec.kinds import KINDS, KindName, MetricName
from .rows import Row, value_of

if TYPE_CHECKING:
    import numpy as np

    from ...metrics import Headline
    from ...runtime import Chooser, Classifier, Embedder, Prediction, Reader, Tagger

    Model = Classifier | Tagger | Reader | Chooser | Embedder

_SAMPLES = 2000
# Of other kinds the usual ones.
_METRICS: dict[KindName, tuple[MetricName, ...]] = {"classification": ("accuracy", "f1_macro")}
Text = str | tuple[str, str] | list[str]


def answers(
    model: Model, texts: Iterator[Any], window: int | None = None, aggregation: str | None = None
) -> Iterator[Any]:
    """Yield the model's answer to each text, in order, as texts arrive. `aggregation`: as in `Tagger.tag`, None for its default."""
    from ...runtime import Chooser, Embedder, Reader, Tagger

    if isinstance(model, Chooser):
        return model.choices(texts, window=window)
    if isinstance(model, Reader | Embedder):
        return model.answers(texts, window=window)
    if isinstance(model, Tagger):
        return model.tag(texts, aggregation=aggregation or "first", window=window)  # type: ignore[arg-type]
    return model.classify(texts, window=window)


def text_of(names: tuple[str, ...], row: Row, labels: Sequence[str] = ()) -> Text:
    """Return the text of a row. Also checks that the row has its labels, before anything is answered."""
    texts = [value_of(row, name, "--pair" if index else "--text") for index, name in enumerate(names)]
    for label in labels:
        value_of(row, label, "--label")
    for name, text in zip(names, texts, strict=True):
        check_text(f"{row.place}: {name}", text)
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


def check_text(place: str, text: Any) -> None:
    if not isinstance(text, str):
        raise CompressError(f"{place}: expected text, found {type(text).__name__}")
    check_unicode(place, text)


class Answered(ABC):
    """Answers the rows of a file, with texts in `columns`, and scores them if there are labels, in the column `label`."""

    def __init__(self, model: Any, columns: tuple[str, ...], label: str | None) -> None:
        self.model, self._columns, self._label = model, columns, label
        self._gold: list[Any] = []  # of every row that was passed to `text`, if there are labels

    def text(self, row: Row) -> Any:
        """Return the model's input for the row, and store its label. Raises `CompressError`."""
        text, gold = self.read(row)
        if self._label is not None:
            self._gold.append(gold)
        return text

    @abstractmethod
    def read(self, row: Row) -> tuple[Any, Any]:
        """Return the model's input for the row, and the row's label in the form that is scored, None without one. Raises
        `CompressError`."""

    def answers(self, texts: Iterator[Any]) -> Iterator[Any]:
        return answers(self.model, texts)

    def cells(self, answer: Any) -> tuple[Any, float | None]:
        """Return what is added to the row: the answer, and the model's confidence."""
        return self.model.settings.kind.cells(answer)

    @abstractmethod
    def add(self, row: Row, answer: Any) -> None:
        """Store what is scored of the answer."""

    @abstractmethod
    def summary(self) -> str:
        """Return the scores, in a line."""

    def scored(self, metrics: Sequence[MetricName], outputs: np.ndarray, gold: np.ndarray) -> str:
        """Format e.g. `120 texts: accuracy 91.67 (85.83 to 96.67), f1_macro 91.60 (85.10 to 96.60); 95% intervals`."""
        from ...tasks import TASK_KINDS

        fields, kind = KINDS[self._kind], TASK_KINDS[self._kind]
        words = [
            _with_interval(name, kind.scoring.headline((name,), -1, self.model.labels), outputs, gold)
            for name in metrics
        ]
        what = fields.unit if fields.grouped is None else fields.grouped[fields.unit != "choice"]
        return f"{len(gold):,} {what}{'' if len(gold) == 1 else 's'}: {', '.join(words)}; 95% intervals"

    @property
    def _kind(self) -> KindName:
        name: Any = next(name for name, kind in ANSWER_KINDS.items() if kind is self.model.settings.kind)
        return name


class AnsweredTexts(Answered):
    """Answers texts and scores them by labels, scores, or relevances."""

    def __init__(self, model: Any, columns: tuple[str, ...], label: str | None) -> None:
        super().__init__(model, columns, label)
        self._names = model.labels
        self._queries: dict[str, int] = {}  # for passages, the text in the column `query` -> its number
        self._outputs: list[Any] = []
        self._ids: Mapping[str, int] = {name: index for index, name in enumerate(self._names)}
        self._numbers: Mapping[str, int] = {str(index): index for index in range(len(self._names))}
        self._numbered = False  # whether one of the file's labels is such a number
        self._fields = KINDS[self._kind]

    def _label_columns(self, row: Row) -> tuple[str, ...]:
        """Return the label columns; a model that gives several labels may have one for each, of 0 and 1, comma-separated in the option."""
        if self._label is None:
            return ()
        return label_columns(self._label, row.values) if self._fields.many else (self._label,)

    def read(self, row: Row) -> tuple[Text, Any]:
        columns = self._label_columns(row)
        text = text_of(self._columns, row, columns)
        return text, self._gold_of(row, columns) if columns else None

    def _gold_of(self, row: Row, columns: tuple[str, ...]) -> Any:
        """Return the row's label; None for a pair without a score."""
        if len(columns) > 1:
            return self._marks(row, columns)
        value = row.values[next(iter(columns))]
        if self._fields.many:
            return self._flags(row, value)
        if self._fields.unit == "pair" and _is_blank(value):
            return None
        if self._fields.named_labels:
            return self._id(row, value)
        if self._kind == "ranking":
            return self._relevance(row, value)
        return _gold_number(row, str(self._label), value)

    def add(self, row: Row, answer: Prediction) -> None:
        if self._label is None:
            return
        if isinstance(answer, LabelsPrediction):
            self._outputs.append([answer.scores[name] - 0.5 for name in self._names])
        elif answer.label is not None:
            self._outputs.append([name == answer.label for name in self._names])
        else:
            self._outputs.append([answer.score])

    def _relevance(self, row: Row, value: Any) -> tuple[float, int]:
        """Return the relevance with the number of its query."""
        from ...tasks.reading.number_texts import relevance_of

        gold = _gold_number(row, str(self._label), relevance_of(value))
        if gold < 0:
            raise CompressError(f"{row.place}: {self._label}: expected a relevance of at least 0, found {gold:g}")
        return gold, self._queries.setdefault(row.values[self._columns[0]], len(self._queries))

    def _marks(self, row: Row, columns: Sequence[str]) -> list[bool]:
        """Return flags from a column of 0 and 1 for each label."""
        if sorted(columns) != sorted(self._names):
            raise CompressError(f"--label: expected the columns {','.join(self._names)}, found {','.join(columns)}")
        marks = {name: flag(row.values[name]) for name in columns}
        if wrong := next((name for name, mark in marks.items() if mark is None), None):
            raise CompressError(f"{row.place}: {wrong}: expected 0 or 1, found {brief(row.values[wrong])}")
        return [bool(marks[name]) for name in self._names]

    def _flags(self, row: Row, value: Any) -> list[bool]:
        """Return flags from a list of labels, by their names or numbers; a number that is not in a list may as well say whether a text has
        the one label that the column is named after."""
        labels = label_list(value)
        if labels and self._may_be_flag(value, labels):
            raise CompressError(
                f"{row.place}: {self._label}: expected a list of labels, found {brief(value)}; "
                f"for columns of 0 and 1 give --label {','.join(self._names)}"
            )
        if labels is None:
            raise CompressError(f"{row.place}: {self._label}: expected a list of labels, found {brief(value)}")
        ids = {self._id(row, name) for name in labels}
        return [index in ids for index in range(len(self._names))]

    def _may_be_flag(self, value: Any, labels: list[str]) -> bool:
        """Whether `value`, in which these `labels` were found, is a single number, or false or true, that is not clearly a label's name; or
        has 0 or 1 for each label."""
        if is_vector(labels):
            return len(labels) == len(self._names)
        (one, *more) = labels
        if more or isinstance(value, list | tuple) or str(value).lstrip().startswith("["):
            return False
        known = one in self._ids and not (flag(one) is not None and self._label in self._ids)
        return not known and (flag(one) is not None or one.isdecimal())

    def _id(self, row: Row, value: Any) -> int:
        """Return the id for a label's name, also for a whole number written as 1.0; or for its number, if the names are no numbers."""
        name = next((text for text in (str(value).strip(), label_text(value)) if text in self._ids), label_text(value))
        ids = self._ids if name in self._ids or not self._numbers.keys().isdisjoint(self._ids) else self._numbers
        if name not in ids:
            near = next((other for other in self._names if other.casefold() == name.casefold()), None)
            hint = f"; did you mean {near!r}?" if near else f"; known: {', '.join(self._names[:10])}"
            if (twin := encoded_otherwise(name, self._names)) is not None:
                hint = f": it looks like {twin!a}, and its characters are encoded in another way"
            shown = repr(name[:60]) if twin is None else ascii(name)
            raise CompressError(f"{row.place}: {self._label}: unknown label {shown}{hint}")
        self._numbered |= ids is self._numbers
        return ids[name]

    def summary(self) -> str:
        import numpy as np

        from ...tasks import TASK_KINDS

        scored = [row for row, gold in enumerate(self._gold) if gold is not None]
        gold = np.array([self._gold[row] for row in scored])
        outputs = np.array(self._outputs, dtype=np.float64)[scored]
        if not len(gold):
            raise CompressError("nothing can be scored: no pair has a score")
        if TASK_KINDS[self._kind].scoring.by_correlation and (gold == gold[0]).all():
            raise CompressError(f"nothing can be scored: all scores are {gold[0]:g}")
        metrics = _METRICS.get(self._kind, self._fields.metrics[: self._fields.usual])
        rows, notes = self._scored_rows(gold)
        return "; ".join([self.scored(metrics, outputs[rows], gold[rows]), *notes])

    def _scored_rows(self, gold: np.ndarray) -> tuple[Any, list[str]]:
        """Return the rows that are scored, and notes on how labels were read, and on rows without labels."""
        import numpy as np

        from ...metrics.ranks import scored_queries
        from ...tasks.kinds.embedding import unscored_note
        from ...tasks.kinds.ranking import left_out

        notes = [f"its labels are numbers, 0 for {self._names[0]}"] if self._numbered else []
        if blank := len(self._gold) - len(gold):
            notes.append(unscored_note(blank, len(self._gold)))
        scored = scored_queries(gold) if self._queries else []
        return (np.sort(np.concatenate(scored)), left_out(gold)) if scored else (slice(None), notes)


def _with_interval(name: str, metric: Headline, outputs: np.ndarray, gold: np.ndarray) -> str:
    import numpy as np

    drawn = metric.resampled([(outputs, outputs)], gold, _SAMPLES, np.random.default_rng(0))[0]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{name} {metric(outputs, gold):.2f} ({low:.2f} to {high:.2f})"


def _is_blank(value: Any) -> bool:
    from ...tasks.kinds.embedding import is_blank

    return is_blank(value)


def _gold_number(row: Row, label: str, value: Any) -> float:
    from ...tasks.reading.number_texts import comma_hint, parse_number

    number = parse_number(value)
    if not math.isfinite(number):
        written = f"{brief(value)}{comma_hint(value)}"
        raise CompressError(f"{row.place}: {label}: expected a finite number, found {written}")
    return number
