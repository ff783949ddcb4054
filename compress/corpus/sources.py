"""Corpus sources named by a user: files, folders and hub data sets; the identity of their contents; their lines."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import CompressError
from ..files.paths import expand_home
from ..store.hashing import canonical, hash_file, hash_folder
from .files import ANY_SUFFIX, file_lines, is_text
from .hub import PREFIX, HubSource, hub_lines, parse_hub

READER_VERSION = 1  # raise when reading the same sources gives other text


@dataclass(frozen=True)
class FileSource:
    """A UTF-8 text file, one paragraph per line, blank lines between documents; `name` has no machine-specific path."""

    path: Path
    name: str

    def __str__(self) -> str:
        return str(self.path)


Source = FileSource | HubSource


def corpus_sources(words: Sequence[str]) -> tuple[Source, ...]:
    """Return sources in the given order; a folder's text files (`.txt`, `.xz`, `.gz`, `.zst`, at any depth) by name.

    A word is a path, or a hub data set as in `parse_hub`. Every file is opened: raises `CompressError` for one that is missing, unreadable,
    given twice, without text or not UTF-8 up to its first text. The hub is not accessed yet.
    """
    if not words:
        raise CompressError("the corpus: expected at least one text file, folder or hub data set, found none")
    sources = tuple(source for word in words for source in _sources(word))
    seen: set[Path | HubSource] = set()
    for source in sources:
        one = source.path.resolve() if isinstance(source, FileSource) else source
        if one in seen:
            raise CompressError(f"{source}: given twice in the corpus")
        seen.add(one)
        if isinstance(source, FileSource) and not any(file_lines(source.path)):
            raise CompressError(f"{source}: holds no text")
    return sources


def _sources(word: str) -> list[Source]:
    if word.startswith(PREFIX):
        return [parse_hub(word)]
    path = expand_home(word)
    if path.is_dir():
        return list(_text_files_below(path))
    if not path.exists():
        raise CompressError(f"{path}: no such file or folder")
    if not is_text(path):
        raise CompressError(f"{path}: expected a text file named {ANY_SUFFIX}")
    return [FileSource(path, path.name)]


def _text_files_below(folder: Path) -> list[FileSource]:
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if is_text(path)}
    hidden = {name for name in names if any(part.startswith(".") for part in name.split("/"))}
    kept = sorted(name for name in names if names[name].is_file() and name not in hidden)
    if not kept:
        raise CompressError(f"{folder}: expected text files named {ANY_SUFFIX}, found none")
    return [FileSource(names[name], name) for name in kept]


def corpus_fingerprint(sources: Sequence[Source]) -> str:
    """Return the SHA-256, in hexadecimal, of the sources in order: names and bytes of files, ids and revisions of data sets.

    The location of files does not matter. Raises `CompressError` for what cannot be read.
    """
    return hashlib.sha256(canonical([READER_VERSION, *map(_identity, sources)])).hexdigest()


def _identity(source: Source) -> list[str | None]:
    if isinstance(source, FileSource):
        return ["file", source.name, hash_file(source.path)]
    if source.folder is not None:
        return ["folder", hash_folder(source.folder), source.column]
    return ["hub", source.name, source.config, source.revision, source.column]


def paragraphs(sources: Sequence[Source]) -> Iterator[str]:
    """Yield every paragraph in order, and `""` where a document ends: at a blank line, and at the end of a file or row."""
    for source in sources:
        yield from file_lines(source.path) if isinstance(source, FileSource) else hub_lines(source)
        yield ""
