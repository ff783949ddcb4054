"""Check the files that a bundle is run from against those that it lists. Each file's hash is cached, so that it is computed once."""

from __future__ import annotations

from pathlib import Path

from ..errors import CheckFailed, CompressError
from .file_hashes import file_sha256
from .folder import read_json

ADVICE = "ship or download the bundle again; `--no-verify`, `verify=False` in Python, runs it as it is"


class ListedHashes:
    """The file hashes in the bundle.json of `folder`; without one, or if it lists none, nothing is checked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files = read_json(folder / "bundle.json", optional=True).get("files")
        if files is not None and not isinstance(files, dict):
            raise CompressError(f"{folder / 'bundle.json'}: files: expected an object, found {type(files).__name__}")
        self._files = files

    def lists(self, name: str) -> bool:
        return self._files is not None and name in self._files

    def check(self, path: Path, real: Path | None = None) -> None:
        """Check `path`, in the folder; `real`: where the file was when the folder was opened. CheckFailed: it is gone, or listed with
        another SHA-256 or not at all. CompressError: unreadable."""
        if self._files is None:
            return
        name = path.relative_to(self._folder).as_posix()
        entry = self._files.get(name)
        if not isinstance(entry, dict) or not isinstance(entry.get("sha256"), str):
            raise CheckFailed(f"{path}: not listed in bundle.json with a SHA-256; {ADVICE}")
        file = real or path
        if not file.exists():
            raise CheckFailed(f"{path}: no such file, but bundle.json lists it; {ADVICE}")
        try:
            digest = file_sha256(file)
        except OSError as error:
            raise CompressError(f"{path}: cannot be read: {error.strerror}") from None
        if digest != entry["sha256"]:
            raise CheckFailed(f"{path}: altered: its SHA-256 is not the one in bundle.json; {ADVICE}")
