"""The command line: a thin layer over the package, and its only printer. Heavy imports are inside commands."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, NoReturn

import typer

from ..errors import CompressError, Interrupted
from ..processes import ranks, signals
from ..version import __version__
from . import (
    ablations,
    attending,
    benching,
    info,
    inits,
    reproducing,
    runs,
    searches,
    shipping,
    verifying,
    vocabularies,
)
from .predict import command as predicting
from .screen import leave_stdout, print_in_any_encoding
from .words import check_words, usage_message

_UsageError: Any = typer.BadParameter.__bases__[0]  # typer gives it no public name
_OF_THE_DISK = (  # errors of the user's disk or paths
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EACCES, errno.EROFS, errno.EPERM, errno.ENAMETOOLONG,
    errno.ELOOP, errno.ENOTDIR, errno.EISDIR,
)  # fmt: skip
# Commands in which all processes of torchrun take part; the others are for the first alone.
_TOGETHER = (
    "run",
    "ablate",
)
# Commands that keep finished steps, from which the same command continues; the others start from the beginning.
_CONTINUED = (*_TOGETHER, "search", "reproduce")
_PATIENCE = 20.0  # seconds; torchrun kills after 30

app = typer.Typer(
    name="compress",
    help="Compress a BERT teacher by a recipe, measure the cost and ship a verified int8 ONNX bundle.",
    epilog="Exit codes: 0 done, 1 a check failed, 2 wrong input, 130 and 143 interrupted.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_EXAMPLES = {
    runs.run: (
        "compress run distilbert --task toy-sentiment --teacher bert-mini",
        "compress run int8 --teacher ./my-bert --train a.csv --dev b.csv --text review --label stars",
        "compress run distilbert tinybert-small --task sst2 --task mrpc --seeds 3",
    ),
    runs.plan: ("compress plan tinybert --teacher ./my-bert --task my-task.yaml --corpus ./text",),
    runs.report: ("compress report runs/int8-* -o comparison",),
    reproducing.reproduce: (
        "compress reproduce reports/pruned-minilm --data-dir glue",
        "compress reproduce runs/RUN -o again",
    ),
    benching.bench: (
        "compress bench my-int8 openvino-f32:my-int8 --shape 1x128",
        "compress bench my-int8 --shape 1x16 --shape 1x64 --shape 1x256 -o lengths",
    ),
    attending.attention: ('compress attention runs/RUN --text "a charming journey" -o attention.html',),
    shipping.ship: (
        "compress ship runs/RUN -o my-int8",
        "compress ship --from runs/report --max-latency-ms 3 --min-score 88 -o my-int8",
        "compress ship runs/RUN -o my-int8 --push me/my-int8 --private",
        "compress ship runs/RUN -o my-int8 --triton models",
    ),
    shipping.checkpoint: ("compress checkpoint runs/RUN --stage teacher -o my-teacher",),
    verifying.verify: (
        "compress verify my-int8 --task my-task.yaml",
        "compress verify my-int8 --train a.csv --dev b.csv --text review --label stars",
    ),
    predicting.predict: (
        'compress predict my-int8 "a charming journey"',
        "compress predict my-int8 --input reviews.csv --text review --label stars -o answered.csv",
    ),
    ablations.ablate: ("compress ablate tinybert-small --task toy-sentiment --teacher bert-mini",),
    searches.search: (
        "compress search int8 distilbert --task toy-sentiment --teacher bert-mini --max-size-mb 5 --trials 4",
    ),
    inits.init: ("compress init --train a.csv --dev b.csv",),
    vocabularies.vocab: ("compress vocab --corpus ./text --size 8000 -o words",),
}
for _command, _lines in _EXAMPLES.items():  # one paragraph per example, so that help does not join them
    app.command(epilog="\n\n".join(["Examples:", *_lines]))(_command)
app.command(name="list")(info.list_)
app.command()(info.doctor)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"compress {__version__}")
        raise typer.Exit


@app.callback()
def _main_options(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Compress a BERT teacher by a recipe, measure the cost and ship a verified int8 ONNX bundle."""
    if not ranks.is_first() and context.invoked_subcommand not in _TOGETHER:
        raise typer.Exit


def _command_path(words: list[str]) -> str:
    """Return the path of the command that `words` name, for an error without one: an option without its value."""
    known = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    return " ".join(["compress", *(word for word in words[:1] if word in known)])


def main() -> None:
    """Run a command; the process exits with one of the codes in the help."""
    signals.install(continues=any(word in _CONTINUED for word in sys.argv[1:2]))
    # Set before torch is imported, so that its waiting threads sleep. By default they spin, which takes cores from working threads.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        check_words(sys.argv[1:])
        print_in_any_encoding(in_json="--json" in sys.argv and sys.argv[1:2] != ["predict"])
        code = app(args=sys.argv[1:], prog_name="compress", standalone_mode=False)
        if code:
            sys.exit(code)
    except _UsageError as error:
        path = error.ctx.command_path if error.ctx else _command_path(sys.argv[1:])
        complaint = usage_message(error, sys.argv[1:])
        if ranks.is_first() and complaint:  # empty if help was printed
            typer.echo(f"error: {path}: {complaint}; see `{path} -h`", err=True)
        sys.exit(error.exit_code)
    except (CompressError, Interrupted) as error:
        _exit_with_error(error)
    except Exception as error:
        if (stop := signals.interruption_behind(error)) is not None:
            _exit_with_error(stop)
        if not isinstance(error, OSError) or error.errno not in _OF_THE_DISK:
            raise
        if error.filename is None:  # mostly stdout, which keeps what it has taken
            message = f"the output: {error.strerror}; what was written so far is incomplete"
        else:
            message = f"{error.filename}: {error.strerror}; nothing half-written is kept"
        typer.echo(f"error: {message}", err=True)
        _empty_stdout()
        sys.exit(2)


def _empty_stdout() -> None:
    """Write what stdout still holds, or leave it if it takes no more."""
    try:
        sys.stdout.flush()
    except OSError:
        leave_stdout()


def _exit_with_error(error: CompressError | Interrupted) -> NoReturn:
    if not ranks.is_first() and ranks.wait_for_first_process(_PATIENCE):
        sys.exit(error.exit_code)  # the first process has printed the same error
    who = "" if ranks.is_first() else f"process {ranks.rank()}: "
    for line in str(error).splitlines():
        typer.echo(f"error: {who}{line}", err=True)
    sys.exit(error.exit_code)
