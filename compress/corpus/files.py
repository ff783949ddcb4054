"""Lines of text files, plain or compressed, in bounded memory; one line says what is wrong with a file."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from compress.errors import CompressError

from .zst import ZstandardFile

_OPENERS = {".xz": lzma.LZMAFile, ".gz": gzip.GzipFile, ".zst": ZstandardFile}
SUFFIXES = (".txt", *_OPENERS)
LONGEST = 1 << 18  # bytes of one paragraph; a longer line is cut at a space, so that memory stays bounded
_BUFFER = 1 << 20
_BOM = b"\xef\xbb\xbf"


def open_text(path: Path) -> BinaryIO:
    """The bytes of the text in `path`, decompressed by its suffix while they are read."""
    if path.suffix == ".txt":
        return path.open("rb", buffering=_BUFFER)
    opener = _OPENERS[path.suffix]
    return io.BufferedReader(cast(io.RawIOBase, opener(path)), _BUFFER)


def file_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file without the spaces around them; a long one in pieces of at most `LONGEST` bytes.

    Raises `CompressError` for a file that cannot be read, is damaged or cut short, or is not UTF-8.
    """
    number = 0
    try:
        with open_text(path) as file:
            for number, raw in _numbered(file):  # noqa: B007 - the errors below tell it
                yield raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        wrong = f"byte 0x{error.object[error.start]:02x}"
        raise CompressError(f"{path}:{number}: expected UTF-8 text, found {wrong} ({error.reason})") from None
    except EOFError:
        raise CompressError(f"{path}: the compressed file is cut short after line {number}; get it again") from None
    except (lzma.LZMAError, zlib.error, OSError) as error:
        raise CompressError(_refused(path, error)) from None


def _refused(path: Path, error: Exception) -> str:
    """The libraries give no error number for contents that they refuse; the system does for a file."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"{path}: cannot be read: {error.strerror}"
    return f"{path}: is damaged, or not compressed as its name says: {error}"


def _numbered(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, bytes of the line or of a piece of it)."""
    number, rest = 1, b""
    while piece := file.readline(LONGEST - len(rest)):
        line = rest + piece
        ends = line.endswith(b"\n")
        cut = len(line) if ends or len(line) < LONGEST else _cut(line)
        yield number, line[:cut].removeprefix(_BOM) if number == 1 else line[:cut]
        rest = line[cut:]
        number += ends
    if rest:
        yield number, rest


def _cut(line: bytes) -> int:
    """Where to cut a line that is too long: after its last space, or else where a character starts."""
    space = line.rfind(b" ") + 1
    if space > LONGEST // 2:
        return space
    return next((at for at in range(len(line) - 1, 0, -1) if line[at] & 0xC0 != 0x80), len(line))
