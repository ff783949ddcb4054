"""Reading Zstandard files: one that was cut short must not pass for a whole one."""

from __future__ import annotations

import io
from pathlib import Path

_CHUNK = 1 << 14  # compressed bytes at a time: bounds what one step can expand to


class ZstandardFile(io.RawIOBase):
    """The contents of a `.zst` file of one or more frames.

    The `zstandard` library's own reader ends silently where a cut file ends; this one raises `EOFError`. Damaged
    contents raise an `OSError` without a number, as the standard library's gzip does.
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
        """Decompress a little more; False at the end of the last frame."""
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
