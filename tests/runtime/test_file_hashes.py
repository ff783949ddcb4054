"""Hashes of files: computed once, stored atomically, and no failure if they cannot be stored."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from compress.runtime import file_hashes
from compress.runtime.file_hashes import file_sha256

CONTENT = b"weights"
TRUE = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as old enough."""
    monkeypatch.setattr(file_hashes, "SETTLED_SECONDS", -1.0)
    path = tmp_path / "model.onnx"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that gets an entry for every file that is hashed."""
    digests: list[str] = []
    real = hashlib.file_digest

    def digest(file, name: str):
        digests.append(name)
        return real(file, name)

    monkeypatch.setattr(hashlib, "file_digest", digest)
    return digests


def kept(cache: Path) -> list[Path]:
    return sorted((cache / "bert-compress" / "file-hashes").glob("*"))


def test_an_untouched_file_is_read_once(model: Path, cache: Path, hashed: list[str]) -> None:
    assert [file_sha256(model) for _ in range(3)] == [TRUE] * 3
    assert len(hashed) == 1
    (file,) = kept(cache)
    assert json.loads(file.read_text())["sha256"] == TRUE


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"{", b"[]", b"null", b'{"sha256": "00"}', b"[" * 100_000, "too short", "no text", "other"],
)
def test_an_entry_that_is_not_ours_is_replaced(
    model: Path, cache: Path, hashed: list[str], content: bytes | str
) -> None:
    file_sha256(model)
    (file,) = kept(cache)
    good = file.read_text()
    changed = {
        "too short": good.replace(TRUE, TRUE[:-1]),
        "no text": good.replace(f'"{TRUE}"', "64"),
        "other": good.replace('"bytes": ', '"bytes": 9'),
    }
    file.write_bytes(content if isinstance(content, bytes) else changed[content].encode())
    assert file_sha256(model) == TRUE
    assert len(hashed) == 2
    assert file.read_text() == good


def test_a_cache_that_cannot_be_written_is_no_failure(model: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    assert [file_sha256(model) for _ in range(2)] == [TRUE] * 2
    assert cache.read_text() == "a file where the folder should be"


def test_a_failed_rename_leaves_no_file(model: Path, cache: Path) -> None:
    file_sha256(model)
    (file,) = kept(cache)
    file.unlink()
    file.mkdir()
    assert file_sha256(model) == TRUE
    assert kept(cache) == [file]


@pytest.mark.parametrize("home", ["", "relative/cache"])
def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert file_hashes.cache_folder() == tmp_path / ".cache" / "bert-compress" / "file-hashes"


def test_without_a_home_nothing_is_kept(model: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", none)
    assert [file_sha256(model) for _ in range(2)] == [TRUE] * 2
    assert len(hashed) == 2
