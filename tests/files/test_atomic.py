"""Files that are whole or absent: the writer, its state after a failure, which leftovers are swept, and the exchange."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from compress.files import atomic
from compress.files.atomic import abandoned_paths, creating, exchange, replacing, sweep, temporary_path, write_text


def gone() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def of_process(path: Path, process: int) -> Path:
    """Return the path with another process id in its name."""
    return path.with_name(path.name.replace(f"-{os.getpid()}-", f"-{process}-"))


def test_takes_the_place_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for text in ("one", "two ×\n"):
        write_text(path, text)
        assert path.read_bytes() == text.encode()
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_the_old_file_and_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def refused(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(OSError, match=rf"Input/output error: '{re.escape(str(path))}'"):
        write_text(path, "new")
    with pytest.raises(KeyboardInterrupt), replacing(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "none" / "a.txt"))):
        write_text(tmp_path / "none" / "a.txt", "new")


@pytest.mark.parametrize("code", [0, errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EACCES])
def test_of_two_that_create_a_file_the_first_to_end_has_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """`code`: with which a disk without hard links refuses them."""
    path = tmp_path / "a.txt"

    def refused(one: Path, other: Path) -> None:
        raise OSError(code, os.strerror(code), str(one), None, str(other))

    if code:
        monkeypatch.setattr(os, "link", refused)
    with pytest.raises(FileExistsError, match=re.escape(repr(str(path)))), creating(path) as second:
        second.write_text("second")
        with creating(path) as first:
            first.write_text("first")
            assert not path.exists()
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_not_created_to_its_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(KeyboardInterrupt), creating(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())

    def refused(self: Path, *_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted", str(self))

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(PermissionError, match=re.escape(repr(str(path)))), creating(path) as part:
        part.write_text("whole")
    assert not list(tmp_path.iterdir())


def test_threads_that_write_one_file_have_a_name_each(tmp_path: Path) -> None:
    texts, errors = [letter * 100_000 for letter in "abcd"], list[Exception]()

    def write(text: str) -> None:
        try:
            for _ in range(10):
                write_text(tmp_path / "a.txt", text)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=[text]) for text in texts]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert not (tmp_path / "a.txt").exists() or (tmp_path / "a.txt").read_text() in texts
    assert errors == []
    assert len(list(tmp_path.iterdir())) == 1


def test_sweeps_what_dead_processes_left_and_nothing_else(tmp_path: Path) -> None:
    own = temporary_path(tmp_path / "a.txt", atomic.PART)
    dead = of_process(own, gone())
    elsewhere = dead.with_name(
        re.sub(r"\.[0-9a-f]{6}-", ".000000-", dead.name)
    )  # of another machine, where the process may be alive
    old = elsewhere.with_name(elsewhere.name.replace("a.txt", "b.txt"))
    foreign = [
        tmp_path / name for name in ("a.txt.part", ".a.txt.part", ".a.txt.tmp", "result.tmp", ".x.12-34-56.part")
    ]
    kept = [own, of_process(own, os.getppid()), elsewhere, *foreign]
    for path in (*kept, dead, old):
        path.touch()
    day = time.time() - 90_000
    os.utime(old, (day, day))
    write_text(tmp_path / "a.txt", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", *(path.name for path in kept)}
    sweep(tmp_path / "none")


def test_what_is_abandoned_tells_its_place_the_youngest_first(tmp_path: Path) -> None:
    process = gone()
    folders = [of_process(temporary_path(tmp_path / name, atomic.OLD), process) for name in ("x", "y", "x")]
    for age, folder in enumerate(folders):
        folder.mkdir()
        os.utime(folder, (time.time() - age, time.time() - age))
    temporary_path(tmp_path / "x", atomic.OLD).mkdir()
    assert abandoned_paths(tmp_path, atomic.OLD) == [(tmp_path / path.name[1], path) for path in folders]
    assert abandoned_paths(tmp_path, atomic.BUILDING) == abandoned_paths(tmp_path / "none", atomic.OLD) == []


def test_exchange_swaps_two_folders_or_says_that_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    swapped = exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / ("b" if swapped else "a")).exists()
    if sys.platform == "linux":
        assert swapped
        with pytest.raises(FileNotFoundError):
            exchange(tmp_path / "a", tmp_path / "none")
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())  # a C library without the call
    assert not exchange(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127])
def test_a_name_as_long_as_a_disk_takes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with creating(path) as part:
        part.write_text("new")
        assert [each for _, each in abandoned_paths(tmp_path, "part")] == []
    write_text(path, "newer")
    assert [each.name for each in tmp_path.iterdir()] == [name] and path.read_text() == "newer"
