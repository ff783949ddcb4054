"""Where a bundle goes: never over anything but a bundle, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..atomic import BUILDING, OLD, abandoned, beside, exchange, sync
from ..errors import CompressError
from .document import NAME, read_bundle
from .files import contents


def check_target(out: Path, force: bool | None) -> None:
    """Only nothing, an empty folder or, with `force`, a bundle with no file of anybody else's in it. None: what is no bundle
    replaces nothing."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CompressError(f"{out}: expected a folder to make, found {'a link' if out.is_symlink() else 'a file'}")
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not force:
        hint = "" if force is None else "; `--force` replaces a bundle"
        raise CompressError(f"{out}: expected an empty or new folder, found files in it{hint}")
    try:
        listed = read_bundle(out).files
    except CompressError as error:
        raise CompressError(f"{out}: not replaced, for it is not a whole bundle: {error}") from None
    foreign = [name for name in contents(out) if name not in listed and name != NAME]
    if foreign:
        raise CompressError(f"{out}: not replaced, for {foreign[0]!r} is not part of the bundle; move it away first")


def check_name(folder: Path) -> None:
    """CompressError: its path is not UTF-8, which ONNX and ONNX Runtime cannot open."""
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError:
        raise CompressError(
            f"{str(folder)!a}: its path is not UTF-8, which ONNX Runtime cannot open; use another folder"
        ) from None


def recover(out: Path) -> None:
    """Put a bundle back that a process moved aside from `out` for a new one, and was killed before the new one came."""
    for place, aside in abandoned(out.parent, OLD):
        if place.name == out.name:
            with suppress(OSError):  # `out` has files in it
                aside.replace(place)


@contextmanager
def building(out: Path) -> Iterator[Path]:
    """A folder beside `out`, gone afterwards whatever happens; so are parents made for it, when it fails. What killed processes
    left beside it goes first."""
    _sweep(out.parent)
    made = [parent for parent in (out.parent, *out.parent.parents) if not parent.exists()]
    folder = beside(out, BUILDING)
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        _remove(folder, made)
        reason = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        raise CompressError(f"{out}: cannot be written ({reason}); nothing half-written was left behind") from None
    except BaseException:
        _remove(folder, made)
        raise


def _sweep(parent: Path) -> None:
    """An old bundle goes only where a new one has come."""
    old = [aside for place, aside in abandoned(parent, OLD) if (place / NAME).is_file()]
    for leftover in (*old, *(folder for _, folder in abandoned(parent, BUILDING))):
        shutil.rmtree(leftover, ignore_errors=True)


def _remove(folder: Path, made: list[Path]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for parent in made:
        try:
            parent.rmdir()
        except OSError:
            return


def settle(folder: Path, out: Path, *, replaces: bool = False) -> None:
    """Into place, if that is free. An old bundle that it `replaces` changes places with it in one step, and then goes.

    `OSError` where `out` has files in it that nothing is to replace: they may have come while `folder` was made.
    """
    for path in [*sorted(folder.rglob("*")), folder]:
        sync(path)
    if not replaces or not out.exists() or not any(out.iterdir()):
        folder.replace(out)
        sync(out.parent)
    elif exchange(folder, out):
        sync(out.parent)
        shutil.rmtree(folder, ignore_errors=True)
    else:
        _in_two_steps(folder, out)


def _in_two_steps(folder: Path, out: Path) -> None:
    """Where the disk knows no exchange: for a moment the place is empty, and who is killed just then leaves it to `recover`."""
    aside = beside(out, OLD)
    with suppress(OSError):  # somebody else's folder keeps its time
        os.utime(out)  # a rename does not set it, and what is a day old counts as abandoned, whoever lives
    try:
        out.replace(aside)
        folder.replace(out)
    except BaseException:
        with suppress(OSError):  # the new one is in its place
            aside.replace(out)
        raise
    try:
        sync(out.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
