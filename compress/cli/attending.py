"""The command `attention`: attention maps of a run's teacher and student on a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..files.paths import check_folder
from .options import path_option
from .shipping import Run, Store, store_of


def attention(
    run: Run,
    text: Annotated[str, typer.Option(help="Text to analyse.", show_default=False)],
    out: Annotated[
        Path,
        path_option("--out", "-o", metavar="FILE", help="Page to write, e.g. attention.html.", show_default=False),
    ],
    pair: Annotated[str | None, typer.Option(help="Second text, if the task has pairs.", show_default=False)] = None,
    store: Store = None,
) -> None:
    """Show side by side, on one page, what the heads of a run's teacher and student attend to in a text."""
    from ..attention import attention_maps
    from ..report.attention import check_attention_page, write_attention

    check_folder(out.parent, "--out")
    check_attention_page(out)
    maps = attention_maps(run, text, pair, store=store_of(run, store))
    typer.echo(write_attention(maps, out))
