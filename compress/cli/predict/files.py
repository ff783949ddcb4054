"""Predictions for files: read rows, write them with predictions as they are computed, and score them if the file has labels."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...errors import CompressError
from ...files.atomic import creating
from ...files.tabular import CONLL, WORDS
from .answers import Answered, AnsweredTexts
from .checks import check_rows
from .questions import AnsweredQuestions, question_columns
from .rows import MARK, Row, Rows, TableRows, Writer, check_form, suffix_of

if TYPE_CHECKING:
    from .answers import Model
    from .words import WordWriter

PREDICTION, SCORE = "prediction", "prediction_score"  # the columns that are added
SQUAD = ".json"  # SQuAD's format: articles, their paragraphs, and questions on each
VECTORS = ".npy"  # suffix of a file of vectors: `vectors`


@dataclass(frozen=True)
class InputOptions:
    """What a user says of a file to answer. `text`, `pair`, `label`: names of columns. `quoting` and `columns`: as in `Rows`.
    `aggregation`: for a model that labels words, as in `Tagger.tag`."""

    text: str | None
    pair: str | None
    label: str | None
    quoting: bool
    columns: Sequence[str] | None
    aggregation: str | None


def predict_file(model: Model, path: Path, output: Path | None, options: InputOptions) -> str | None:
    """Answer every row of `path`, and write the rows with their predictions to `output`, or stdout. Return the scores, in a line, if there
    is a column of labels. All rows of a regular file are checked before the first is answered; a pipe is read once. Raises
    `CompressError`."""
    unit, label = model.settings.kind.unit, options.label
    if label is not None:
        _check_scorable(model)
    rows = _open_rows(path, model, quoting=options.quoting, columns=options.columns)
    names = _columns(model, WORDS if rows.suffix in CONLL and options.text is None else options.text, options.pair)
    if unit == "pair" and label is not None and len(names) == 1:
        raise CompressError(
            f"--label: cosines of pairs are scored, and {names[0]!r} is one text; name the other's column with --pair"
        )
    check_new(output)
    more = (VECTORS,) if unit == "pair" else CONLL if rows.suffix in CONLL else ()
    with ExitStack() as stack:
        stack.callback(rows.close)
        form = rows.suffix if output is None else suffix_of(output, "--output", more)
        out = sys.stdout if output is None else stack.enter_context(new_file(output))
        same = form == rows.suffix
        delimiter = rows.delimiter if same else ""
        plain = same and not rows.quoting and rows.delimiter == "\t"  # answers may have commas, and JSON has no tab
        answered = _make_answered(model, path, names, label, form, options.aggregation)
        if rows.repeatable:
            encoding, errors = getattr(out, "encoding", None), getattr(out, "errors", None)
            with Path(os.devnull).open("w", encoding=encoding, errors=errors) as nowhere:
                _check_rows(rows, answered, _writer(nowhere, form, delimiter, quoting=not plain))
        if output is not None and rows.marked and delimiter:
            out.write(MARK)
        writer = _writer(out, form, delimiter, quoting=not plain)
        bar = stack.enter_context(Bar(rows, hidden=output is None and sys.stdout.isatty()))
        if not _write_answers(rows, answered, writer, bar):
            raise CompressError(f"{path}: no examples; expected at least one row")
        out.flush()
    return None if label is None else _summary(answered, output)


def _write_answers(rows: Rows | TableRows, answered: Answered, writer: Writer | WordWriter, bar: Bar) -> int:
    """Answer the rows, and write each with its prediction as soon as it is answered. Return their number."""
    read, kept = tee(iter(rows))
    count = 0
    for count, (answer, row) in enumerate(zip(answered.answers(map(answered.text, read)), kept, strict=False), 1):
        answered.add(row, answer)
        writer.write(row._replace(values=row.values | _added_fields(row, *answered.cells(answer))))
        bar(count)
    return count


def _check_scorable(model: Model) -> None:
    """Raise `CompressError` for a model whose answers a column of labels cannot score, and `ModuleNotFoundError` without the packages that
    scoring needs: it comes after the last answer."""
    from ... import tasks  # noqa: F401

    if model.settings.kind.unit == "question":
        raise CompressError(
            f"--label: files are scored for labels of texts, and {model.folder} answers questions; "
            "`compress verify` scores it with --train and --dev, --task or --data-dir"
        )


def _check_rows(rows: Rows | TableRows, answered: Answered, writer: Writer | WordWriter) -> None:
    """Raise `CompressError` for rows that cannot be read, answered, scored or written, before any is answered."""

    def check(row: Row) -> None:
        answered.read(row)
        _added_fields(row, None, None)
        writer.write(row)

    check_rows(rows, check)


def _summary(answered: Answered, output: Path | None) -> str:
    """Return the scores. CompressError: there are none, in which case the message says that the answers in `output` are valid."""
    try:
        return answered.summary()
    except CompressError as error:
        raise CompressError(str(error) if output is None else f"{error}; the answers are in {output}") from None


def _open_rows(path: Path, model: Model, *, quoting: bool, columns: Sequence[str] | None) -> Rows | TableRows:
    from ...runtime import Reader, Tagger

    more = CONLL if isinstance(model, Tagger) else (SQUAD,) if isinstance(model, Reader) else ()
    command = f"compress predict {shlex.quote(str(model.folder))} < {shlex.quote(str(path))}"
    suffix = suffix_of(path, "--input", more, plain=f"to answer its lines, run: {command}")
    if suffix not in more:
        return Rows(path, suffix, quoting=quoting, columns=columns)
    check_form(path, suffix, quoting=quoting, columns=columns)
    if suffix == SQUAD:
        from ...tasks.reading.squad import read_squad

        return TableRows(read_squad(path, labelled=False), ".jsonl")
    from ...tasks.reading.conll import read_conll

    return TableRows(read_conll(path, labelled=False), suffix)


def _writer(file: IO[str], form: str, delimiter: str, *, quoting: bool) -> Writer | WordWriter:
    if form in CONLL:
        from .words import WordWriter

        return WordWriter(file)
    return Writer(file, form, delimiter, quoting=quoting)


def _make_answered(
    model: Model, path: Path, names: tuple[str, ...], label: str | None, form: str, aggregation: str | None
) -> Answered:
    from ...runtime import Chooser, Tagger

    if isinstance(model, Tagger):
        from .words import AnsweredWords

        return AnsweredWords(model, path, names, label, form, aggregation)
    if isinstance(model, Chooser):
        return AnsweredQuestions(model, names, label)
    return AnsweredTexts(model, names, label)


@contextmanager
def new_file(path: Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a new file for writing, which gets its name at the end; an incomplete file is deleted. Raises `CompressError`."""
    try:
        with creating(path) as part, _open_new(part, path, binary=binary) as file:
            yield file
    except FileExistsError:
        raise _exists_already(path) from None


def _open_new(part: Path, path: Path, *, binary: bool) -> IO[Any]:
    try:
        return part.open("xb") if binary else part.open("x", encoding="utf-8", newline="")
    except OSError as error:
        raise CompressError(f"{path}: cannot be written: {error.strerror}; choose another with --output") from None


def check_new(output: Path | None) -> None:
    """Raise `CompressError` if the output file exists already, or a link that leads nowhere."""
    if output is not None and os.path.lexists(output):
        raise _exists_already(output)


def _exists_already(output: Path) -> CompressError:
    return CompressError(f"{output}: exists already; choose another file with --output")


def first_column(model: Any) -> str:
    """Return the column of a text, or of the first of two, if no option names it."""
    return (model.settings.columns or ("text",))[0]


def _columns(model: Model, text: str | None, pair: str | None) -> tuple[str, ...]:
    """Return the text columns; for a model that makes vectors one or two, whatever its task has."""
    own, chooses = model.settings.columns, model.settings.kind.unit == "choice"
    if text is None and pair is None and own is not None and not chooses:
        return own
    first = first_column(model) if text is None else text
    texts = (first,) if pair is None else (first, pair)
    columns = question_columns(own, text, pair) if chooses else texts
    if columns[0] == pair:
        raise CompressError(f"--pair: expected another column than --text, found {pair!r} for both")
    if own is not None and not chooses and len(own) != len(columns) and model.settings.kind.unit != "pair":
        option = "leave --pair out" if pair is not None else "name the second column with --pair"
        raise CompressError(f"--text: the bundle reads {len(own)} column(s) of text ({', '.join(own)}); {option}")
    return columns


def _added_fields(row: Row, answer: Any, score: float | None) -> dict[str, Any]:
    added = {PREDICTION: answer} if score is None else {PREDICTION: answer, SCORE: score}
    if taken := added.keys() & row.values.keys():
        raise CompressError(
            f"{row.header}: has a column {min(taken)!r}, which is also the name of an added column; rename it"
        )
    return added


class Bar:
    """A bar on stderr for the share of the file that was read; none off a terminal. Call it with the number of texts answered."""

    def __init__(self, rows: Rows | TableRows, *, hidden: bool) -> None:
        from ..screen import console

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
            self._live.update(self._task, completed=self._rows.done, texts=count)

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
