"""`predict` for files: rows in, the same rows with predictions out, as they come; and scores where the file has labels."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import tee
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import CompressError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    from ..metrics import Headline
    from ..runtime import Classifier, Prediction

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SUFFIXES = (*_DELIMITERS, ".jsonl")
PREDICTION, SCORE = "prediction", "prediction_score"  # the columns that are added
_SAMPLES = 2000
Row = dict[str, Any]
Text = str | tuple[str, str]


class Rows:
    """The rows of a .csv, .tsv or .jsonl file, one at a time. `line` is where the last one ended."""

    def __init__(self, path: Path) -> None:
        self.path, self.suffix, self.line = path, _suffix(path, "--input"), 0
        try:
            self.file: IO[str] = path.open(encoding="utf-8-sig", newline="" if self.suffix in _DELIMITERS else None)
            self.size = os.fstat(self.file.fileno()).st_size
        except OSError as error:
            raise CompressError(f"{path}: cannot be read: {error.strerror}") from None

    @property
    def bytes_read(self) -> int:
        return self.file.buffer.tell()  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Row]:
        try:
            yield from self._delimited() if self.suffix in _DELIMITERS else self._json()
        except UnicodeDecodeError as error:
            raise CompressError(
                f"{self.path}: expected UTF-8 text, found {error.reason} after line {self.line}"
            ) from None
        except csv.Error as error:
            raise CompressError(f"{self.path}:{self.line + 1}: {error}; check the quotes") from None

    def _delimited(self) -> Iterator[Row]:
        csv.field_size_limit(sys.maxsize)
        reader = csv.reader(self.file, delimiter=_DELIMITERS[self.suffix], strict=True)
        header = next(reader, None)
        if not header:
            raise CompressError(f"{self.path}: empty file")
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise CompressError(
                    f"{self.path}: line {reader.line_num}: expected {len(header)} fields, found {len(row)}"
                )
            self.line = reader.line_num
            yield dict(zip(header, row, strict=True))

    def _json(self) -> Iterator[Row]:
        for number, line in enumerate(self.file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise CompressError(f"{self.path}: line {number}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise CompressError(f"{self.path}: line {number}: expected a JSON object")
            self.line = number
            yield row


def _suffix(path: Path, option: str) -> str:
    suffix = path.suffix.lower().replace(".ndjson", ".jsonl")
    if suffix not in _SUFFIXES:
        raise CompressError(
            f"{option}: expected a {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]} file, found {path.name}"
        )
    return suffix


class _Writer:
    """Rows to a file of `suffix`'s form, the header with the first."""

    def __init__(self, file: IO[str], suffix: str) -> None:
        self._file, self._suffix = file, suffix
        self._csv: Any = None

    def write(self, row: Row) -> None:
        if self._suffix not in _DELIMITERS:
            self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
            return
        if self._csv is None:
            self._csv = csv.writer(self._file, delimiter=_DELIMITERS[self._suffix], lineterminator="\n")
            self._csv.writerow(row)
        self._csv.writerow([value if isinstance(value, str) else json.dumps(value) for value in row.values()])


def predict_file(
    classifier: Classifier,
    path: Path,
    output: Path | None,
    *,
    text: str | None,
    pair: str | None,
    label: str | None,
) -> str | None:
    """Answer every row of `path`; the rows with their predictions go to `output`, or stdout. What the scores are, in a line,
    where `label` names a column of them. Raises `CompressError`."""
    rows = Rows(path)
    names = _columns(classifier, text, pair)
    if output is not None and output.exists():
        raise CompressError(f"{output}: is there already; choose another file with --output")
    with ExitStack() as stack:
        stack.callback(rows.file.close)
        form = rows.suffix if output is None else _suffix(output, "--output")
        out = sys.stdout if output is None else stack.enter_context(_new(output))
        writer, scores = _Writer(out, form), _Scores(classifier, label)
        read, kept = tee(iter(rows))
        texts = (_text(rows, names, row) for row in read)
        bar = stack.enter_context(Bar(rows, hidden=output is None and sys.stdout.isatty()))
        for count, (answer, row) in enumerate(zip(classifier.classify(texts), kept, strict=False), 1):
            scores.add(rows, row, answer)
            writer.write(row | _added(rows, row, answer))
            bar(count)
        out.flush()
    return scores.told() if label is not None else None


@contextmanager
def _new(path: Path) -> Iterator[IO[str]]:
    """The file, open for writing; nothing half-written is kept."""
    with path.open("x", encoding="utf-8", newline="") as file:
        try:
            yield file
        except BaseException:
            path.unlink()
            raise


def _columns(classifier: Classifier, text: str | None, pair: str | None) -> tuple[str, ...]:
    own = classifier.settings.columns
    if text is None and pair is None and own is not None:
        return own
    found = (text or "text",) if pair is None else (text or "text", pair)
    if own is not None and len(own) != len(found):
        option = "leave --pair out" if pair is not None else "name the second column with --pair"
        raise CompressError(f"--text: the bundle reads {len(own)} column(s) of text ({', '.join(own)}); {option}")
    return found


def _text(rows: Rows, names: tuple[str, ...], row: Row) -> Text:
    texts = [_value(rows, row, name, "--pair" if place else "--text") for place, name in enumerate(names)]
    for name, text in zip(names, texts, strict=True):
        if not isinstance(text, str):
            raise CompressError(f"{rows.path}: line {rows.line}: {name}: expected text, found {type(text).__name__}")
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


def _value(rows: Rows, row: Row, name: str, option: str) -> Any:
    if name not in row:
        near = did_you_mean(name, list(row)).partition("; known")[0] or ";"
        raise CompressError(
            f"{rows.path}: line {rows.line}: no column {name!r}{near} name one of {', '.join(map(repr, row))} with {option}"
        )
    return row[name]


def _added(rows: Rows, row: Row, answer: Prediction) -> Row:
    added: Row = (
        {PREDICTION: answer.score}
        if answer.label is None
        else {PREDICTION: answer.label, SCORE: round(answer.score, 6)}
    )
    if taken := added.keys() & row.keys():
        raise CompressError(f"{rows.path}: has a column {min(taken)!r}, which is the name of what is added; rename it")
    return added


class _Scores:
    """What the answers are worth where the rows have labels, in the column `label`."""

    def __init__(self, classifier: Classifier, label: str | None) -> None:
        self._label, self._names = label, classifier.labels
        self._gold: list[float] = []
        self._given: list[float] = []
        self._classes = True
        self._ids: Mapping[str, int] = {name: index for index, name in enumerate(self._names)}
        self._numbers: Mapping[str, int] = {str(index): index for index in range(len(self._names))}

    def add(self, rows: Rows, row: Row, answer: Prediction) -> None:
        if self._label is None:
            return
        value = _value(rows, row, self._label, "--label")
        self._classes = answer.label is not None
        self._gold.append(self._id(rows, str(value).strip()) if self._classes else _number(rows, self._label, value))
        self._given.append(self._ids[answer.label] if answer.label is not None else answer.score)

    def _id(self, rows: Rows, name: str) -> int:
        """Of a label's name; or of its number, where the names are no numbers."""
        ids = self._ids if name in self._ids or not self._numbers.keys().isdisjoint(self._ids) else self._numbers
        if name not in ids:
            near = next((other for other in self._names if other.casefold() == name.casefold()), None)
            hint = f"; did you mean {near!r}?" if near else f"; known: {', '.join(self._names[:10])}"
            raise CompressError(f"{rows.path}: unknown label {name[:60]!r}{hint}")
        return ids[name]

    def told(self) -> str:
        """`120 texts: accuracy 91.67 (85.83 to 96.67), f1_macro 91.60 (85.10 to 96.60); 95% intervals`."""
        import numpy as np

        from ..metrics import ClassHeadline, CorrelationHeadline

        if not self._gold:
            raise CompressError("--label: expected rows to score, found none")
        gold, given = np.array(self._gold), np.array(self._given)
        if self._classes:
            outputs = np.eye(len(self._names))[given.astype(int)]
            metrics = {name: ClassHeadline((name,)) for name in ("accuracy", "f1_macro")}
            words = [_with_interval(name, metric, outputs, gold.astype(np.int64)) for name, metric in metrics.items()]
        else:
            metrics = {name: CorrelationHeadline((name,)) for name in ("pearson", "spearman")}
            words = [_with_interval(name, metric, given[:, None], gold) for name, metric in metrics.items()]
        return f"{len(gold):,} texts: {', '.join(words)}; 95% intervals"


def _with_interval(name: str, metric: Headline, outputs: np.ndarray, gold: np.ndarray) -> str:
    import numpy as np

    drawn = metric.resampled([(outputs, outputs)], gold, _SAMPLES, np.random.default_rng(0))[0]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{name} {metric(outputs, gold):.2f} ({low:.2f} to {high:.2f})"


def _number(rows: Rows, label: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise CompressError(f"{rows.path}: {label}: expected a number, found {str(value)[:60]!r}") from None


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
