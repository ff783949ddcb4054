"""The command line: a thin skin over the package, and its only printer. Heavy imports are inside commands."""

from __future__ import annotations

import errno
import sys

import typer

from .. import __version__, signals
from ..errors import CompressError, Interrupted
from . import ablations, benching, bundles, info, runs, vocabularies

app = typer.Typer(
    name="compress",
    help="Compress a BERT teacher by a recipe, measure what it cost, ship a verified int8 ONNX bundle.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (runs.run, runs.plan, runs.report, benching.bench, bundles.ship, bundles.verify, bundles.predict):
    app.command()(command)
app.command()(ablations.ablate)
app.command()(vocabularies.vocab)
app.command(name="list")(info.list_)
app.command()(info.doctor)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"compress {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Compress a BERT teacher by a recipe, measure what it cost, ship a verified int8 ONNX bundle."""


def main() -> None:
    """Exit codes: 0 done, 1 a check failed, 2 wrong input, 130 and 143 interrupted."""
    signals.install()
    try:
        app()
    except (CompressError, Interrupted) as error:
        for line in str(error).splitlines():
            typer.echo(f"error: {line}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        typer.echo(f"error: {error.filename or 'the output'}: {error.strerror}; nothing half-written is kept", err=True)
        sys.exit(2)
