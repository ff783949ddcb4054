"""Helpers for the examples: read their options, write files without replacing yours, and report a mistake in one line."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from compress import CompressError
from compress.files.paths import check_folder, unambiguous_path
from compress.pipeline.plan.teachers import resolve_teacher


def options(about: str | None, *, teacher: str, out: str, steps: str) -> argparse.Namespace:
    """Return the options, checked, of an example that writes its data: `teacher` and `steps` are for the help."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument(
        "--teacher", type=known_teacher, default="bert-mini", help=f"a card, or the folder of {teacher}"
    )
    parser.add_argument("--out", type=folder, default=out, help="folder for the files, runs and bundle")
    parser.add_argument("--steps", type=count, help=f"optimizer steps of each training; default: {steps}")
    return parser.parse_args()


def known_teacher(word: str) -> str:
    resolve_teacher(word)
    return word


def folder(word: str) -> Path:
    if not word:
        raise CompressError("--out: expected a folder, found an empty word")
    return unambiguous_path(word)


def count(word: str) -> int:
    if not word.isdecimal() or not int(word):
        raise CompressError(f"--steps: expected a whole number of at least 1, found {word!r}")
    return int(word)


@contextmanager
def data_file(path: Path) -> Iterator[TextIO]:
    """Yield a buffer that is written to `path` at the end. Raises CompressError and writes nothing if `path` exists with other content."""
    check_folder(path.parent, "--out")
    file = io.StringIO(newline="")
    yield file
    data = file.getvalue().encode()
    if path.exists() and not (path.is_file() and path.read_bytes() == data):
        raise CompressError(f"{path}: exists already, with other content; choose another folder with --out")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def run(main: Callable[[], None]) -> None:
    try:
        main()
    except CompressError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
