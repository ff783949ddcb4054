"""Lines of text files, plain or compressed, in bounded memory, with one-line errors."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import CompressError
from ..files.regular import check_regular

_CHUNK = 1 << 14  # compressed bytes at a time; bounds the output of one step


class ZstandardFile(io.RawIOBase):
    """The contents of a `.zst` file of one or more frames.

    The `zstandard` library's own reader ends silently at the end of a truncated file; this one raises `EOFError`. Damaged contents raise an
    `OSError` without a number, like the standard library's gzip.
    """

    def __init__(self, path: Path) -> None:
        import zstandard

        self._error = zstandard.ZstdError
        self._start = zstandard.ZstdDecompressor().decompressobj
        self._frame = self._start()
        self._ready = b""
        self._file = path.open("rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        while not self._ready:
            if not self._step():
                return 0
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _step(self) -> bool:
        """Decompress the next chunk; return False at the end of the last frame."""
        ended = self._frame.eof
        chunk = (self._frame.unused_data if ended else b"") or self._file.read(_CHUNK)
        if not chunk and ended:
            return False
        if not chunk:
            raise EOFError
        if ended:
            self._frame = self._start()
        try:
            self._ready = self._frame.decompress(chunk)
        except self._error as error:
            raise OSError(str(error)) from None
        return True

    def close(self) -> None:
        self._file.close()
        super().close()


_OPENERS = {".xz": lzma.LZMAFile, ".gz": gzip.GzipFile, ".zst": ZstandardFile}
_SUFFIXES = (".txt", *_OPENERS)
ANY_SUFFIX = f"{', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}"
LONGEST = 1 << 18  # bytes of one paragraph; a longer line is cut at a space, so that memory stays bounded
_BUFFER = 1 << 20
_BOM = b"\xef\xbb\xbf"


def is_text(path: Path) -> bool:
    """Whether the suffix, in any case, is that of a text file."""
    return path.suffix.lower() in _SUFFIXES


def open_text(path: Path) -> BinaryIO:
    """Return the bytes of the text in `path`, decompressed while read, according to its suffix."""
    suffix = path.suffix.lower()
    if suffix == ".txt":
        return path.open("rb", buffering=_BUFFER)
    opener = _OPENERS[suffix]
    return io.BufferedReader(cast(io.RawIOBase, opener(path)), _BUFFER)


def file_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, stripped; a long line in pieces of at most `LONGEST` bytes.

    Raises `CompressError` for a file that cannot be read, is damaged or truncated, or is not UTF-8.
    """
    check_regular(path, "a text file")
    number = 0
    try:
        with open_text(path) as file:
            for number, raw in _numbered_lines(file):  # noqa: B007 - the errors below tell it
                yield raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        wrong = f"byte 0x{error.object[error.start]:02x}"
        raise CompressError(f"{path}:{number}: expected UTF-8 text, found {wrong} ({error.reason})") from None
    except EOFError:
        raise CompressError(f"{path}: the compressed file is truncated after line {number}; get it again") from None
    except (lzma.LZMAError, zlib.error, OSError) as error:
        raise CompressError(_refusal_message(path, error)) from None


def _refusal_message(path: Path, error: Exception) -> str:
    """Return a message for an error: libraries give no error number for damaged contents, the system does for a file."""
    if isinstance(error, OSError) and error.errno is not None:
        return f"{path}: cannot be read: {error.strerror}"
    return f"{path}: is damaged, or not compressed as its name says: {error}"


def _numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, bytes of the line or of a piece of it)."""
    number, rest = 1, b""
    while piece := file.readline(LONGEST - len(rest)):
        line = rest + piece
        ends = line.endswith(b"\n")
        cut = len(line) if ends or len(line) < LONGEST else _cut_position(line)
        yield number, line[:cut].removeprefix(_BOM) if number == 1 else line[:cut]
        rest = line[cut:]
        number += ends
    if rest:
        yield number, rest


def _cut_position(line: bytes) -> int:
    """Return where to cut a line that is too long: after its last space, or else at a character boundary."""
    space = line.rfind(b" ") + 1
    if space > LONGEST // 2:
        return space
    return next((at for at in range(len(line) - 1, 0, -1) if line[at] & 0xC0 != 0x80), len(line))
