"""Text of a Hugging Face data set: streamed at a pinned revision, or from a local folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CompressError, did_you_mean
from ..files.paths import expand_home
from ..hub import endpoint, error_text, is_commit, load_splits, quiet_data_sets, reason

PREFIX = "hub:"
SPLIT = "train"
_SAVED = ("dataset_dict.json", "state.json")  # written by save_to_disk
_FORM = "hub:OWNER/NAME[/CONFIG]@REVISION[:COLUMN] or hub:./FOLDER[:COLUMN]"


@dataclass(frozen=True)
class HubSource:
    """The split `train` of a data set; each row's `column` is a document, each of its lines a paragraph.

    `folder` replaces a hub id and its revision (a commit: 40 hexadecimal digits).
    """

    name: str
    config: str | None = None
    revision: str | None = None
    column: str = "text"
    folder: Path | None = None

    def __str__(self) -> str:
        return f"data set {self.folder or self.name}"


def parse_hub(word: str) -> HubSource:
    """Parse `hub:OWNER/NAME[/CONFIG]@REVISION[:COLUMN]`, or `hub:FOLDER[:COLUMN]` with a path that starts with `.`, `/` or `~`.

    The folder was saved by `datasets`, or is laid out like a hub repository. Raises `CompressError`.
    """
    place, _, column = word.removeprefix(PREFIX).partition(":")
    column = column or "text"
    if place.startswith((".", "/", "~")):
        folder = expand_home(place)
        if not folder.is_dir():
            raise CompressError(f"{folder}: no such folder; expected {_FORM}")
        return HubSource(folder.name, column=column, folder=folder)
    match = re.fullmatch(r"(?P<name>[^/@]+(/[^/@]+)?)(/(?P<config>[^/@]+))?(@(?P<revision>.*))?", place)
    if match is None:
        raise CompressError(f"{word}: expected {_FORM}")
    revision = match["revision"]
    if not is_commit(revision):
        raise CompressError(
            f"{word}: expected a commit (40 hexadecimal digits) after @, found {revision!r}; "
            f"{endpoint()}/datasets/{match['name']}/commits/main lists them"
        )
    return HubSource(match["name"], match["config"], revision, column)


def hub_lines(source: HubSource) -> Iterator[str]:
    """Yield the lines of every row, and an empty one after each row. Raises `CompressError`."""
    try:
        for number, row in enumerate(_load(source), 1):
            yield from (line.strip() for line in _row_text(source, number, row).split("\n") if line.strip())
            yield ""
    except CompressError:
        raise
    except Exception as error:  # the library raises a dozen unrelated types: network, layout, configuration
        why = error_text(error) if source.revision is None else reason(error, source.name, source.revision, "dataset")
        raise CompressError(f"{source}: cannot be read: {why}") from error


def _load(source: HubSource) -> Iterable[Any]:
    import datasets

    if source.folder is None:
        (rows,) = load_splits(
            source.name, source.config, str(source.revision), [SPLIT], "give text files", streaming=True
        )
        return rows
    if not any((source.folder / name).is_file() for name in _SAVED):
        with quiet_data_sets():
            return datasets.load_dataset(str(source.folder), split=SPLIT, streaming=True)
    saved = datasets.load_from_disk(str(source.folder))
    if isinstance(saved, datasets.Dataset):
        return saved
    if SPLIT not in saved:
        raise CompressError(f"{source}: no split {SPLIT!r}; found {', '.join(map(repr, saved))}")
    return saved[SPLIT]


def _row_text(source: HubSource, number: int, row: Mapping[str, Any]) -> str:
    if source.column not in row:
        advice = did_you_mean(source.column, list(row))
        raise CompressError(f"{source}: no column {source.column!r}{advice}; name one after a colon: {_FORM}")
    text = row[source.column]
    if not isinstance(text, str):
        raise CompressError(f"{source}: row {number}: {source.column}: expected text, found {type(text).__name__}")
    return text
