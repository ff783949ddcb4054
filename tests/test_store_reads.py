"""Artefacts survive a disk that is temporarily unreadable, and files that other tools leave in their folders."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from compress.errors import CompressError
from compress.store import Store, manifest

KEY = "0" * 32


def make(out: Path, work: Path) -> dict:
    (out / "sub").mkdir()
    (out / "sub" / "model.bin").write_bytes(b"weights")
    return {}


def refuse(out: Path, work: Path) -> dict:
    raise AssertionError("built again")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.build(KEY, make, describe={})
    return Store(tmp_path / "store")


READERS = {
    "the hash of a file": "compress.store.hashing.hashlib.file_digest",
    "the manifest": "compress.store.manifest.Path.read_bytes",
    "a folder": "compress.store.manifest.os.scandir",
}
REASONS = {
    errno.EIO: "the disk failed (Input/output error); check it",
    errno.ESTALE: "cannot be read or written now (Stale file handle); what is finished is kept: run again",
    errno.EMFILE: "cannot be read or written now (Too many open files); what is finished is kept: run again",
}


@pytest.mark.parametrize("code", REASONS)
@pytest.mark.parametrize("reader", READERS)
def test_a_read_that_fails_for_a_moment_is_one_line_and_the_artefact_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch, reader: str, code: int
):
    def fail(place: object, *rest: object) -> None:
        raise OSError(code, os.strerror(code), *([str(place)] if reader == "a folder" else []))

    with monkeypatch.context() as patched:
        patched.setattr(READERS[reader], fail)
        for ask in (lambda: store.find(KEY), lambda: store.build(KEY, refuse, describe={})):
            with pytest.raises(CompressError) as raised:
                ask()
            message = str(raised.value)
            assert message.startswith(str(store.path(KEY)))
            assert REASONS[code] in message
            assert "\n" not in message
    assert store.build(KEY, refuse, describe={}).path == store.path(KEY)


def test_a_read_that_is_not_allowed_is_one_line_and_the_artefact_stays(store: Store, monkeypatch: pytest.MonkeyPatch):
    def fail(place: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))

    with monkeypatch.context() as patched:
        patched.setattr("compress.store.manifest.os.scandir", fail)
        with pytest.raises(CompressError, match=r"cannot be used as the store \(Permission denied\)"):
            store.build(KEY, refuse, describe={})
    assert store.find(KEY) is not None


def test_records_of_other_tools_are_no_damage(store: Store):
    folder = store.path(KEY)
    (folder / ".DS_Store").write_bytes(b"1")
    (folder / "sub" / "._model.bin").write_bytes(b"2")
    (folder / ".cache").mkdir()
    (folder / ".cache" / "entry").touch()
    (folder / ".link").symlink_to(folder)
    assert store.build(KEY, refuse, describe={}).path == folder
    assert store.last_problem is None


def test_records_of_other_tools_are_no_part_of_an_artefact(tmp_path: Path):
    def beside(out: Path, work: Path) -> dict:
        (out / ".DS_Store").touch()
        return make(out, work)

    store = Store(tmp_path / "store")
    path = store.build(KEY, beside, describe={}).path
    assert list(manifest.read(path, KEY)["files"]) == ["sub/model.bin"]
    (path / ".DS_Store").write_bytes(b"1")
    assert Store(store.root).find(KEY) is not None


def test_a_folder_in_place_of_the_manifest_is_damage(store: Store):
    (store.path(KEY) / "manifest.json").unlink()
    (store.path(KEY) / "manifest.json").mkdir()
    assert store.find(KEY) is None
    assert "manifest.json cannot be read" in str(store.last_problem)
