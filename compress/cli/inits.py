"""`init`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ..errors import CompressError
from .options import Dev, KindOfTask, Label, MaxLength, Pair, Text, Train, path_option

Out = Annotated[Path | None, path_option("--out", "-o", metavar="FILE", help="New task file. Default: NAME.yaml here.")]


def init(
    train: Train = None,
    dev: Dev = None,
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    kind: KindOfTask = None,
    max_length: MaxLength = None,
    out: Out = None,
) -> None:
    """Inspect your own files and write a commented task file, to edit and pass to --task.

    Without --train and --dev, it uses train.csv and dev.csv, or similar, in this folder. It guesses columns that you do not name.
    """
    from ..files.atomic import write_text
    from ..tasks.own.files import own_files
    from ..tasks.own.task import names_split, task_name
    from ..tasks.own.template import files_in, guess_columns, task_yaml

    if train is None and dev is None:
        train, dev = files_in(Path())
    own = own_files(train=train, dev=dev, text=text, pair=pair, label=label, kind=kind, max_length=max_length)
    if own is None:
        raise CompressError("--train: expected a file of labelled examples, found none")
    own = guess_columns(own, [name for name, value in (("text", text), ("label", label)) if value is not None])
    name = task_name(own.train.absolute())
    file = out or Path(f"{name}.yaml")
    if file.suffix not in (".yaml", ".yml"):
        raise CompressError(f"{file}: a task file ends in .yaml; choose another name with --out")
    if file.exists():
        raise CompressError(f"{file}: exists already; choose another name with --out")
    if not file.absolute().parent.is_dir():
        raise CompressError(f"{file}: its folder does not exist; choose another with --out")
    text_of_file, unread = task_yaml(own, file)
    write_text(file, text_of_file)
    typer.echo(file)
    if names_split(own.train):
        typer.echo(
            f"task `{name}`, named after the folder of {own.train.name}; to rename it, change `name` in the file"
        )
    if unread:
        named = ", ".join(f"`{name}`" for name in unread)
        typer.echo(f"not used: {named}; name a second text with --pair, another label column with --label")
    if label is None and "," in own.label and "\nkind: multilabel " in text_of_file:
        typer.echo(
            "a text may have any of these labels, since all are columns of 0 and 1; if one holds the labels, name it with --label"
        )
    columns = " and ".join(f"`{name}`" for name in own.texts)
    typer.echo(
        f"texts in {columns}, labels in `{own.label}`; now: compress run int8 --teacher DIR --task {shlex.quote(str(file))}"
    )
