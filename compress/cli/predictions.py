"""`predict` for files: rows in, the same rows with predictions out, as they come; and scores where the file has labels."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import tee
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import CompressError
from ..runtime.kinds import ANSWER_KINDS, Chosen, LabelsPrediction, RelevancePrediction
from ..runtime.kinds.kind import Unit
from ..runtime.reading import check_unicode
from ..tabular import label_list, label_text
from .question_rows import place_in, question_columns, question_of
from .row_files import Row, Rows, Writer, suffix_of, value_of

if TYPE_CHECKING:
    import numpy as np

    from ..metrics import Headline
    from ..runtime import Chooser, Classifier, Embedder, Prediction, Reader, Tagger

    Model = Classifier | Tagger | Reader | Chooser | Embedder

PREDICTION, SCORE = "prediction", "prediction_score"  # the columns that are added
_SAMPLES = 2000
_METRICS = {"classification": ("accuracy", "f1_macro")}  # of other kinds the usual ones
Text = str | tuple[str, str] | list[str]


def answers(model: Model, texts: Iterator[Any], window: int | None = None) -> Iterator[Any]:
    """What `model` answers each text with, in order, as they come."""
    from ..runtime import Chooser, Embedder, Reader, Tagger

    if isinstance(model, Chooser):
        return model.choices(texts, window=window)
    if isinstance(model, Reader | Embedder):
        return model.answers(texts, window=window)
    asked = model.tag if isinstance(model, Tagger) else model.classify
    return asked(texts, window=window)


def predict_file(
    model: Model,
    path: Path,
    output: Path | None,
    *,
    text: str | None,
    pair: str | None,
    label: str | None,
) -> str | None:
    """Answer every row of `path`; the rows with their predictions go to `output`, or stdout. What the scores are, in a line,
    where `label` names a column of them. Raises `CompressError`."""
    unit = model.settings.kind.unit
    if unit in ("word", "question") and label is not None:
        does = {"word": "labels words", "question": "answers questions"}[unit]
        raise CompressError(
            f"--label: files are scored for labels of texts, and {model.folder} {does}; "
            "`compress verify` scores it with --task or --data-dir"
        )
    rows = Rows(path)
    names = _columns(model, text, pair)
    if unit == "pair" and label is not None and len(names) == 1:
        raise CompressError(
            f"--label: cosines of pairs are scored, and {names[0]!r} is one text; name the other's column with --pair"
        )
    check_new(output)
    with ExitStack() as stack:
        stack.callback(rows.file.close)
        form = rows.suffix if output is None else suffix_of(output, "--output")
        out = sys.stdout if output is None else stack.enter_context(new_file(output))
        writer = Writer(out, form, rows.delimiter if form == rows.suffix else "")
        scores = _Scores(model, label, names)
        read, kept = tee(iter(rows))
        texts = (_example(unit, names, row, label) for row in read)
        count = 0
        bar = stack.enter_context(Bar(rows, hidden=output is None and sys.stdout.isatty()))
        for count, (answer, row) in enumerate(zip(answers(model, texts), kept, strict=False), 1):
            scores.add(row, answer)
            writer.write(row._replace(values=row.values | _added(row, *model.settings.kind.cells(answer))))
            bar(count)
        if not count:
            raise CompressError(f"{path}: no examples; expected at least one row")
        out.flush()
    return scores.told() if label is not None else None


def _example(unit: Unit, names: tuple[str, ...], row: Row, label: str | None) -> Any:
    return question_of(names, row, label) if unit == "choice" else text_of(names, row, label, words=unit == "word")


@contextmanager
def new_file(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """The file, open for writing; nothing half-written is kept."""
    try:
        new = path.open("xb") if binary else path.open("x", encoding="utf-8", newline="")
    except OSError as error:
        raise CompressError(f"{path}: cannot be written: {error.strerror}; choose another with --output") from None
    with new as file:
        try:
            yield file
        except BaseException:
            path.unlink()
            raise


def check_new(output: Path | None) -> None:
    """CompressError: there is something already where the answers are to go."""
    if output is not None and output.exists():
        raise CompressError(f"{output}: is there already; choose another file with --output")


def _columns(model: Model, text: str | None, pair: str | None) -> tuple[str, ...]:
    """Of a model that gives texts vectors one or two, whatever its task has."""
    own = model.settings.columns
    if model.settings.kind.unit == "choice":
        return question_columns(own, text, pair)
    if text is None and pair is None and own is not None:
        return own
    found = (text or "text",) if pair is None else (text or "text", pair)
    if own is not None and len(own) != len(found) and model.settings.kind.unit != "pair":
        option = "leave --pair out" if pair is not None else "name the second column with --pair"
        raise CompressError(f"--text: the bundle reads {len(own)} column(s) of text ({', '.join(own)}); {option}")
    return found


def text_of(names: tuple[str, ...], row: Row, label: str | None, *, words: bool = False) -> Text:
    """Also sees that the row has its label, before anything is answered. `words`: a text may be a list of them."""
    texts = [value_of(row, name, "--pair" if place else "--text") for place, name in enumerate(names)]
    if label is not None:
        value_of(row, label, "--label")
    for name, text in zip(names, texts, strict=True):
        listed = words and isinstance(text, list)
        for part in text if listed else [text]:
            _check_text(f"{row.place}: {name}", part)
        if listed and "" in text:
            raise CompressError(f"{row.place}: {name}: expected words, found an empty one")
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


def _check_text(place: str, text: Any) -> None:
    if not isinstance(text, str):
        raise CompressError(f"{place}: expected text, found {type(text).__name__}")
    check_unicode(place, text)


def _added(row: Row, answer: Any, score: float | None) -> dict[str, Any]:
    added = {PREDICTION: answer} if score is None else {PREDICTION: answer, SCORE: score}
    if taken := added.keys() & row.values.keys():
        raise CompressError(f"{row.header}: has a column {min(taken)!r}, which is the name of what is added; rename it")
    return added


class _Scores:
    """What the answers are worth where the rows have labels, in the column `label`."""

    def __init__(self, model: Model, label: str | None, columns: tuple[str, ...]) -> None:
        self._label, self._names, self._columns = label, model.labels, columns
        self._queries: dict[str, int] = {}  # of passages, the first text -> its number
        self._kind: Any = next(name for name, kind in ANSWER_KINDS.items() if kind is model.settings.kind)
        self._gold: list[Any] = []
        self._outputs: list[Any] = []
        self._ids: Mapping[str, int] = {name: index for index, name in enumerate(self._names)}
        self._numbers: Mapping[str, int] = {str(index): index for index in range(len(self._names))}

    def add(self, row: Row, answer: Prediction | Chosen) -> None:
        if self._label is None:
            return
        if isinstance(answer, Chosen):
            self._gold.append(place_in(self._columns, row, self._label))
            self._outputs.append(answer.probabilities)
            return
        value = value_of(row, self._label, "--label")
        if isinstance(answer, LabelsPrediction):
            self._gold.append(self._flags(row, value))
            self._outputs.append([answer.scores[name] - 0.5 for name in self._names])
        elif answer.label is not None:
            self._gold.append(self._id(row, value))
            self._outputs.append([name == answer.label for name in self._names])
        else:
            gold = _number(row, self._label, value)
            self._gold.append(self._relevance(row, gold) if isinstance(answer, RelevancePrediction) else gold)
            self._outputs.append([answer.score])

    def _relevance(self, row: Row, gold: float) -> tuple[float, int]:
        """With the number of its query."""
        if gold < 0:
            raise CompressError(f"{row.place}: {self._label}: expected a relevance of at least 0, found {gold:g}")
        return gold, self._queries.setdefault(row.values[self._columns[0]], len(self._queries))

    def _flags(self, row: Row, value: Any) -> list[bool]:
        """Of a list of labels, by their names or numbers."""
        found = label_list(value)
        if found is None:
            raise CompressError(f"{row.place}: {self._label}: expected a list of labels, found {str(value)[:60]!r}")
        ids = {self._id(row, name) for name in found}
        return [index in ids for index in range(len(self._names))]

    def _id(self, row: Row, value: Any) -> int:
        """Of a label's name, a whole number maybe written as 1.0; or of its number, where the names are no numbers."""
        name = next((text for text in (str(value).strip(), label_text(value)) if text in self._ids), label_text(value))
        ids = self._ids if name in self._ids or not self._numbers.keys().isdisjoint(self._ids) else self._numbers
        if name not in ids:
            near = next((other for other in self._names if other.casefold() == name.casefold()), None)
            hint = f"; did you mean {near!r}?" if near else f"; known: {', '.join(self._names[:10])}"
            raise CompressError(f"{row.place}: {self._label}: unknown label {name[:60]!r}{hint}")
        return ids[name]

    def told(self) -> str:
        """`120 texts: accuracy 91.67 (85.83 to 96.67), f1_macro 91.60 (85.10 to 96.60); 95% intervals`."""
        import numpy as np

        from ..spec.kinds import KINDS
        from ..tasks import TASK_KINDS

        if not self._gold:
            raise CompressError("--label: expected rows to score, found none")
        most = max(map(len, self._outputs))
        rows = [
            [*row, *[-1.0] * (most - len(row))] for row in self._outputs
        ]  # questions may have fewer endings than others
        gold, outputs = np.array(self._gold), np.array(rows, dtype=np.float64)
        fields = KINDS[self._kind]
        names = _METRICS.get(self._kind, fields.metrics[: fields.usual])
        of = TASK_KINDS[self._kind].headline
        words = [_with_interval(name, of((name,), -1, self._names), outputs, gold) for name in names]
        what = {"ranking": "passages", "choice": "questions"}.get(self._kind, f"{fields.unit}s")
        return f"{len(gold):,} {what}: {', '.join(words)}; 95% intervals"


def _with_interval(name: str, metric: Headline, outputs: np.ndarray, gold: np.ndarray) -> str:
    import numpy as np

    drawn = metric.resampled([(outputs, outputs)], gold, _SAMPLES, np.random.default_rng(0))[0]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{name} {metric(outputs, gold):.2f} ({low:.2f} to {high:.2f})"


def _number(row: Row, label: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise CompressError(f"{row.place}: {label}: expected a finite number, found {str(value)[:60]!r}")
    return number


class Bar:
    """A bar on stderr, of the share of the file that is read; none off a terminal. Called with the texts answered."""

    def __init__(self, rows: Rows, *, hidden: bool) -> None:
        from .display import console

        self._rows, self._screen = rows, console(stderr=True)
        self._live: Any = None
        self._hidden = hidden or not self._screen.is_terminal

    def __enter__(self) -> Bar:
        if not self._hidden:
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (BarColumn(bar_width=24), TextColumn("{task.fields[texts]:,} texts"), TimeRemainingColumn())
            self._live = Progress(*columns, console=self._screen, transient=True)
            self._live.start()
            self._task = self._live.add_task("", total=self._rows.size, texts=0)
        return self

    def __call__(self, count: int) -> None:
        if self._live is not None and count % 16 == 0:
            self._live.update(self._task, completed=self._rows.bytes_read, texts=count)

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
