"""Check the files that a bundle is run from against those that it lists. Each file's hash is cached, so that it is computed once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ..errors import CheckFailed, CompressError
from ..files.regular import read_regular
from .file_hashes import file_sha256
from .folder import MOST_JSON, read_json

BLANK_DIGEST = "0" * 64  # in place of a bundle.json's digest while it is computed

ADVICE = "ship or download the bundle again; `--no-verify`, `verify=False` in Python, runs it as it is"


class ListedHashes:
    """The file hashes in the bundle.json of `folder`; without one, or if it lists none, nothing is checked. CheckFailed: bundle.json has a
    digest, and it is not that of its text."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        document = read_json(folder / "bundle.json", optional=True)
        if "digest" in document:
            _check_digest(folder / "bundle.json", document["digest"])
        files = document.get("files")
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


def digest_of(text: str, digest: str) -> str:
    """Return the hex SHA-256 of the text of a bundle.json, with `BLANK_DIGEST` in place of its `digest`."""
    before, separator, after = text.rpartition(digest)
    blank = before + BLANK_DIGEST + after if separator else text
    return hashlib.sha256(blank.encode()).hexdigest()


def _check_digest(path: Path, digest: Any) -> None:
    text = read_regular(path, "a JSON file", MOST_JSON).decode("utf-8")
    if not isinstance(digest, str) or not digest or digest_of(text, digest) != digest:
        raise CheckFailed(f"{path}: altered: its text does not match its own digest; {ADVICE}")
