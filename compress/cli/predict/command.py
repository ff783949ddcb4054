"""The command `predict`: its options, and texts of the command line and of stdin. Files are answered in `files` and `vectors`."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import CompressError
from ...files.tabular import CONLL, DELIMITERS, not_utf8
from ..options import Bundle, RuntimeThreads, path_option
from ..screen import check_streams, leave_stdout, lines_of_stdin, print_as_it_is

if TYPE_CHECKING:
    from .answers import Model
    from .files import InputOptions
    from .questions import Question

Text = str | tuple[str, str]
JsonAnswers = Annotated[
    bool, typer.Option("--json", help="Print JSON on stdout; with --input, name a .jsonl file as --output instead.")
]
Texts = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT", help="Texts. If there are none, or only -, lines are read from stdin."),
]
Pair = Annotated[
    list[str] | None,
    typer.Option(
        "--pair",
        help="Second text of each pair, in the same order, or several for one text: passages or endings; with --input, their column, "
        "or several, comma-separated.",
    ),
]
Input = Annotated[
    Path | None,
    path_option(
        "--input",
        "-i",
        metavar="FILE",
        help="A .csv, .tsv or .jsonl file to answer row by row. To label words, also .conll or .txt; for questions, SQuAD's .json; "
        "for a .npy --output, .txt.",
    ),
]
Output = Annotated[
    Path | None,
    path_option(
        "--output",
        "-o",
        metavar="FILE",
        help="New file: --input rows with predictions, or vectors (.npy). Default: stdout.",
    ),
]
TextColumn = Annotated[
    str | None, typer.Option("--text", metavar="COLUMN", help="Column of --input. Default: the bundle's.")
]
LabelColumn = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="Column of --input to score the answers against.")
]
Quoting = Annotated[
    bool,
    typer.Option(
        "--quoting/--no-quoting",
        help="Whether fields of a .csv or .tsv --input may be quoted; not in GLUE's files.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,…", help="Names of all columns of a .csv or .tsv --input without a header.", show_default=False
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="Which of the bundle's models: int8, fp32, avx2 (int8 for CPUs without VNNI) or qdq (int8 for OpenVINO). "
        "Default: int8 (OpenVINO: qdq) if the bundle has it."
    ),
]
Runtime = Annotated[str, typer.Option(help="onnxruntime or openvino.")]
PrecisionHint = Annotated[str | None, typer.Option(help="OpenVINO's precision: f32 or bf16. Default: f32.")]
Aggregation = Annotated[
    str | None,
    typer.Option(
        help="How a word's tokens decide its label: first, average or max; none: first, without joining words. "
        "Default: first, as in training.",
        show_default=False,
    ),
]
Verify = Annotated[
    bool,
    typer.Option("--verify/--no-verify", help="Check the SHA-256 of the files used, if the bundle lists it."),
]


def predict(
    bundle: Bundle,
    texts: Texts = None,
    pair: Pair = None,
    source: Input = None,
    output: Output = None,
    text: TextColumn = None,
    label: LabelColumn = None,
    quoting: Quoting = True,
    columns: Columns = None,
    precision: Precision = None,
    threads: RuntimeThreads = None,
    runtime: Runtime = "onnxruntime",
    precision_hint: PrecisionHint = None,
    aggregation: Aggregation = None,
    verify: Verify = True,
    json: JsonAnswers = False,
) -> None:
    """Answer with a bundle. Its kind decides the output: label and score, tab-separated; entities; answer and score; best ending and
    probability; or a text's vector or a pair's cosine.

    A line of stdin is a text or, tab-separated, a pair, a question and its context, or a context and its endings. Answers are
    written while the input is read.
    """
    from ...runtime import load
    from ...runtime.tagger import check_aggregation

    of_a_file = {"--output": output, "--text": text, "--label": label, "--columns": columns}
    _check_sources(texts, pair, source, {**of_a_file, "--no-quoting": None if quoting else True})
    if aggregation is not None:
        check_aggregation(aggregation, "--aggregation")
    if source is not None and json:
        raise _json_with_file(bundle, source)

    warnings.showwarning = lambda message, *_, **__: typer.echo(f"warning: {message}", err=True)
    model = load(
        bundle, precision=precision, threads=threads, runtime=runtime, precision_hint=precision_hint, verify=verify
    )
    piped = not texts or texts == ["-"]
    check_streams(reads=piped and source is None, writes=output is None)
    if output is None:
        print_as_it_is()
    _check_kind(model, bundle, pair, aggregation, needs_pair=source is None and not piped)
    if source is not None:
        from .files import InputOptions

        options = InputOptions(
            text=text,
            pair=pair[0] if pair else None,
            label=label,
            quoting=quoting,
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            aggregation=aggregation,
        )
        _answer_file(model, source, output, options)
        return
    examples = _read_examples(model) if piped else _given_examples(model, texts or [], pair)
    at_once = piped and sys.stdin.isatty()
    _print_answers(model, examples, window=1 if at_once else None, aggregation=aggregation, json=json)


def _print_answers(
    model: Model, examples: Iterable[Any], *, window: int | None, aggregation: str | None, json: bool
) -> None:
    from .answers import answers
    from .lines import json_line, plain_line, report_cut
    from .rows import check_encodable

    read, kept = tee(examples)
    line = (json_line if json else plain_line)(model)
    answered = answers(model, read, window=window, aggregation=aggregation)
    try:
        for answer, example in zip(answered, kept, strict=False):  # answers end with the stream
            with check_encodable("stdout", "; set PYTHONIOENCODING=utf-8"):
                sys.stdout.write(f"{line(example, answer)}\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        leave_stdout()
        return
    report_cut(model)


_DATA = (*DELIMITERS, ".json", ".jsonl", ".ndjson", ".parquet", *CONLL)


def _check_sources(
    texts: list[str] | None, pair: list[str] | None, source: Path | None, beside: dict[str, object]
) -> None:
    """Raise `CompressError` for texts from two places, and for options that do not apply to the source."""
    if source is None:
        if named := next((text for text in texts or [] if text.lower().endswith(_DATA) and os.path.isfile(text)), None):  # noqa: PTH113 - any text, also one too long for a path
            other = (
                "its rows as .csv or .jsonl with --input" if named.lower().endswith(".parquet") else f"--input {named}"
            )
            raise CompressError(f"{named}: is a file, and would be answered as a text; give {other}")
        if lost := next((option for option, value in beside.items() if value is not None), None):
            raise CompressError(f"{lost} needs a file: expected --input FILE with it, found none")
        if pair is not None and (not texts or texts == ["-"]):
            raise CompressError("--pair: a piped line holds both texts, separated by a tab; leave --pair out")
    elif texts:
        raise CompressError("--input names the texts, and TEXT gives others; leave one of the two out")
    elif pair is not None and len(pair) > 1:
        raise CompressError(f"--pair: expected one column of --input, found {len(pair)}")


def _json_with_file(bundle: Path, source: Path) -> CompressError:
    """Return the error of --json for a file; for one of lines, it names the command that answers them one by one."""
    command = f"compress predict --json {shlex.quote(str(bundle))} < {shlex.quote(str(source))}"
    lines = f"; to answer its lines one by one, run: {command}" if source.suffix.lower() == ".txt" else ""
    return CompressError(f"--json: a file is answered in its own form; give --output FILE.jsonl for JSON{lines}")


def _check_kind(
    model: Model, bundle: Path, pair: list[str] | None, aggregation: str | None, *, needs_pair: bool
) -> None:
    """Raise `CompressError` for options that do not apply to this kind of model. `needs_pair`: contexts of questions come from --pair."""
    unit = model.settings.kind.unit
    if pair is not None and unit == "word":
        raise CompressError(f"--pair: {bundle} labels the words of one text; leave --pair out")
    if aggregation is not None and unit != "word":
        raise CompressError(f"--aggregation: {bundle} labels no words; leave --aggregation out")
    if unit == "question" and pair is None and needs_pair:
        raise CompressError(f"--pair: {bundle} answers questions about texts; give the context of each with --pair")


def _answer_file(model: Model, source: Path, output: Path | None, options: InputOptions) -> None:
    from .files import VECTORS, predict_file
    from .lines import report_cut
    from .vectors import write_vectors

    try:
        if output is not None and output.suffix.lower() == VECTORS:
            summary = write_vectors(model, source, output, options)
        else:
            summary = predict_file(model, source, output, options)
    except BrokenPipeError:
        leave_stdout()
        return
    report_cut(model)
    if summary is not None:
        typer.echo(summary, err=output is None)


def _read_examples(model: Model) -> Iterator[Text | Question]:
    """Yield texts of stdin as they arrive; answers are flushed before more input is awaited. For a model that makes vectors, a line with a
    tab is a pair."""
    number, either, chooses = 0, model.settings.kind.unit == "pair", model.settings.kind.unit == "choice"
    from .questions import question_in

    try:
        for number, line in enumerate(lines_of_stdin(), 1):
            text = line.rstrip("\r\n")
            pair = "\t" in text if either else model.columns == 2
            yield question_in(text, number) if chooses else (_split(text, number) if pair else text)
            sys.stdout.flush()
    except UnicodeDecodeError as error:
        raise not_utf8("stdin", error, number, "pipe UTF-8") from None


def _given_examples(model: Model, texts: list[str], pair: list[str] | None) -> list[Text] | list[Question]:
    if model.settings.kind.unit == "choice":
        from .questions import given_question

        return given_question(texts, pair)
    if pair is None:
        if model.columns == 2 and model.settings.kind.unit != "pair":
            raise CompressError(
                f"--pair: {model.folder} reads pairs of texts; give the second text of each with --pair"
            )
        return list(texts)
    if len(texts) == 1:  # a query and its passages
        return [(texts[0], second) for second in pair]
    if len(pair) != len(texts):
        raise CompressError(f"--pair: expected {len(texts)}, one for each text; found {len(pair)}")
    return list(zip(texts, pair, strict=True))


def _split(line: str, number: int) -> tuple[str, str]:
    first, *others = line.split("\t")
    if len(others) != 1:
        raise CompressError(f"stdin:{number}: expected two texts separated by a tab; found {line[:40]!r}")
    return first, others[0]
