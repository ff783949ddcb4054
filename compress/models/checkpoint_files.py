"""Files of a checkpoint, which may be anybody's: read whole or not at all."""

from __future__ import annotations

from pathlib import Path

_MOST_BYTES = 1 << 28  # of a JSON file: the largest tokenizers have some 20 MB


def check_regular(path: Path) -> None:
    """Raise `OSError` for a pipe or a device, which could be read for ever; one that is missing fails when it is read."""
    if path.exists() and not path.is_file():
        raise OSError("expected a file")


def text_of(path: Path) -> str:
    """The UTF-8 text of a file. Raises `OSError` and `ValueError`."""
    check_regular(path)
    if (size := path.stat().st_size) > _MOST_BYTES:
        raise OSError(f"{size} bytes are more than such a file has")
    return path.read_text(encoding="utf-8")
