"""The command `vocab`: a tokenizer trained on plain text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import CompressError
from ..files.paths import check_folder
from .options import path_option


def vocab(
    corpus: Annotated[
        list[str],
        typer.Option("--corpus", help="Plain text: a file, a folder, or hub:OWNER/NAME@REVISION; repeat for several."),
    ],
    out: Annotated[Path, path_option("--out", "-o", help="New tokenizer folder.", show_default=False)],
    kind: Annotated[
        Literal["wordpiece", "bpe"], typer.Option(help="WordPiece as in BERT, or byte-level BPE as in RoBERTa.")
    ] = "wordpiece",
    size: Annotated[
        int, typer.Option(min=1, max=2**31 - 1, help="Maximum number of tokens, including special ones.")
    ] = 30522,
    cased: Annotated[bool, typer.Option("--cased", help="WordPiece: keep upper case and accents.")] = False,
) -> None:
    """Train a tokenizer on plain text, for teachers that start from random weights."""
    from ..bundle.target import building, move_into_place
    from ..corpus import corpus_sources, train_vocabulary
    from ..models.checkpoints.folders import save_tokenizer

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CompressError(f"{out}: exists already; choose a new folder with --out")
    if cased and kind == "bpe":
        raise CompressError("--cased: byte-level BPE always keeps upper case; leave it out")
    check_folder(out, "--out")
    tokenizer = train_vocabulary(corpus_sources(corpus), kind=kind, size=size, lowercase=not cased)
    place = out.resolve()
    with building(place) as folder:
        save_tokenizer(tokenizer, folder)
        move_into_place(folder, place)
    count = tokenizer.get_vocab_size()
    typer.echo(f"{out}: {count:,} tokens" + (f"; the text gives no more, of {size:,} allowed" if count < size else ""))
