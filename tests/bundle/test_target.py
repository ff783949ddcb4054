"""Leftovers of a killed `ship --force`: an old bundle is restored, incomplete bundles are removed."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bundle_making import Run

from compress.bundle import read_bundle, ship, target, verify
from compress.errors import CompressError
from compress.files.atomic import BUILDING, OLD, temporary_path


@pytest.fixture(scope="module")
def gone() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def bundle(bundle_of: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy in a folder with nothing else."""
    return Path(shutil.copytree(bundle_of("toy-sentiment"), tmp_path / "place" / "copy"))


def left_by(process: int, path: Path, kind: str) -> Path:
    name = temporary_path(path, kind)
    return name.with_name(name.name.replace(f"-{os.getpid()}-", f"-{process}-"))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_verify_puts_back_what_a_killed_ship_moved_aside(bundle: Path, gone: int) -> None:
    created = read_bundle(bundle).created
    bundle.rename(left_by(gone, bundle, OLD))
    assert verify(bundle).passed
    assert read_bundle(bundle).created == created
    assert names(bundle.parent) == [bundle.name]


def test_a_ship_that_is_still_at_it_is_left_alone(bundle: Path) -> None:
    aside = left_by(os.getppid(), bundle, OLD)
    bundle.rename(aside)
    with pytest.raises(CompressError, match="expected a bundle's folder, found nothing"):
        verify(bundle)
    assert names(bundle.parent) == [aside.name]


def test_the_next_ship_puts_back_and_sweeps(run: Run, bundle: Path, gone: int) -> None:
    """It keeps an old bundle that was moved aside if no new one has taken its place."""
    elsewhere = left_by(gone, bundle.with_name("other"), OLD)
    elsewhere.mkdir()
    left_by(gone, bundle, BUILDING).mkdir()
    bundle.rename(left_by(gone, bundle, OLD))
    with pytest.raises(CompressError, match="`--force` replaces a bundle"):
        ship(run.folder, bundle, store=run.store)
    ship(run.folder, bundle, store=run.store, model="teacher", force=True)
    assert read_bundle(bundle).model == "teacher"
    assert names(bundle.parent) == sorted([bundle.name, elsewhere.name])


def test_an_old_bundle_goes_once_the_new_one_is_there(run: Run, bundle: Path, gone: int) -> None:
    left_by(gone, bundle, OLD).mkdir()
    ship(run.folder, bundle.with_name("another"), store=run.store)
    assert names(bundle.parent) == ["another", bundle.name]


@pytest.mark.parametrize("exchanges", [True, False])
def test_replaced_with_and_without_an_exchange(
    run: Run, bundle: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:
        monkeypatch.setattr(target, "exchange", lambda one, other: False)
    ship(run.folder, bundle, store=run.store, model="teacher", force=True)
    assert read_bundle(bundle).model == "teacher"
    assert names(bundle.parent) == [bundle.name]


def test_what_came_into_a_new_place_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(CompressError, match=r"out: cannot be written \("), target.building(out) as folder:
        out.mkdir()
        (out / "notes.txt").write_text("of somebody else")
        target.move_into_place(folder, out)
    assert names(tmp_path) == ["out"]
    assert names(out) == ["notes.txt"]


def test_of_two_commands_at_once_the_slower_says_what_a_later_one_says(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "new" / "out"

    def finish_another(path: Path) -> None:
        out.mkdir(exist_ok=True)
        (out / "README.md").write_text("of the quicker one")

    monkeypatch.setattr(target, "sync", finish_another)
    expected = "out: expected an empty or new folder, found files in it"
    with pytest.raises(CompressError, match=f"{expected}; `--force` replaces a bundle$"):
        ship(run.folder, out, store=run.store)
    assert (names(out.parent), names(out)) == (["out"], ["README.md"])


def test_without_an_exchange_an_old_bundle_on_its_way_aside_is_not_taken_for_abandoned(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`verify` in another process runs while its place is empty."""
    monkeypatch.setattr(target, "exchange", lambda one, other: False)
    os.utime(bundle, (0, 0))
    replace, empty = Path.replace, list[bool]()

    def watched(self: Path, destination: Path) -> Path:
        if self.name.endswith(BUILDING):
            target.recover(bundle)
            empty.append(not bundle.exists())
        return replace(self, destination)

    monkeypatch.setattr(Path, "replace", watched)
    with target.building(bundle) as folder:
        (folder / "new").touch()
        target.move_into_place(folder, bundle, replaces=True)
    assert empty == [True]
    assert names(bundle) == ["new"]


def test_without_an_exchange_the_old_one_comes_back_where_the_new_one_cannot_come(
    run: Run, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "exchange", lambda one, other: False)
    replace = Path.replace

    def refused(self: Path, destination: Path) -> Path:
        if self.name.endswith(BUILDING):
            raise OSError(5, "Input/output error")
        return replace(self, destination)

    monkeypatch.setattr(Path, "replace", refused)
    with pytest.raises(CompressError, match=r"cannot be written \(Input/output error"):
        ship(run.folder, bundle, store=run.store, model="teacher", force=True)
    assert read_bundle(bundle).model == "student"
    assert names(bundle.parent) == [bundle.name]


def test_a_full_disk_is_not_blamed_on_the_file_that_is_copied(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "store/model.onnx", None, "out/model.onnx")
    said = r"out: cannot be written \(No space left on device\); nothing"
    with pytest.raises(CompressError, match=said), target.building(tmp_path / "out"):
        raise full
    assert names(tmp_path) == []
