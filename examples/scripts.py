"""Helpers for the examples: write files without replacing yours, and report a mistake in one line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from compress import CompressError
from compress.files.paths import check_folder


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
