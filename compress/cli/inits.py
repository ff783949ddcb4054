"""The command `init`: a task file for a user's own files."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CompressError
from .options import path_option
from .requests import OwnFileOptions
from .signatures import takes_records

Out = Annotated[Path | None, path_option("--out", "-o", metavar="FILE", help="New task file. Default: NAME.yaml here.")]


@takes_records
def init(own: OwnFileOptions, out: Out = None) -> None:
    """Inspect your own files and write a commented task file, to edit and pass to --task.

    Without --train and --dev, it uses train.csv and dev.csv, or similar, in this folder. It guesses columns that you do not name.
    """
    from ..files.atomic import write_text
    from ..tasks.own.task import names_split, task_name
    from ..tasks.own.template import files_in, guess_columns, task_yaml

    if own.train is None and own.dev is None:
        train, dev = files_in(Path())
        own = replace(own, train=train, dev=dev)
    named = own.files()
    if named is None:
        raise CompressError("--train: expected a file of labelled examples, found none")
    files = guess_columns(named, [name for name in ("text", "label") if getattr(own, name) is not None])
    name = task_name(files.train.absolute())
    file = out or Path(f"{name}.yaml")
    if file.suffix not in (".yaml", ".yml"):
        raise CompressError(f"{file}: a task file ends in .yaml; choose another name with --out")
    if file.exists():
        raise CompressError(f"{file}: exists already; choose another name with --out")
    if not file.absolute().parent.is_dir():
        raise CompressError(f"{file}: its folder does not exist; choose another with --out")
    text_of_file, unread, spec = task_yaml(files, file)
    write_text(file, text_of_file)
    typer.echo(file)
    if names_split(files.train):
        typer.echo(
            f"task `{name}`, named after the folder of {files.train.name}; to rename it, change `name` in the file"
        )
    if unread:
        named = ", ".join(f"`{name}`" for name in unread)
        typer.echo(f"not used: {named}; name a second text with --pair, another label column with --label")
    if own.label is None and spec.kind == "multilabel" and len(spec.label_columns) > 1:
        typer.echo(
            "a text may have any of these labels, since all are columns of 0 and 1; if one holds the labels, name it with --label"
        )
    columns = " and ".join(f"`{name}`" for name in spec.text)
    typer.echo(
        f"texts in {columns}, labels in `{files.label}`; now: compress run int8 --teacher DIR --task {shlex.quote(str(file))}"
    )
