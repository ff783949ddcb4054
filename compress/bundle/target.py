"""Where to write a bundle: never over anything but a bundle, and atomically."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import CompressError
from ..files.atomic import BUILDING, OLD, abandoned_paths, exchange, sync, temporary_path
from .document import NAME, read_bundle
from .files import contents


def check_target(out: Path, force: bool | None) -> None:
    """Accept only a new or empty folder or, with `force`, a bundle that contains no other files. `force` is None for output
    that replaces nothing."""
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise CompressError(f"{out}: expected a folder to make, found {'a link' if out.is_symlink() else 'a file'}")
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not force:
        hint = "" if force is None else "; `--force` replaces a bundle"
        raise CompressError(f"{out}: expected an empty or new folder, found files in it{hint}")
    try:
        listed = read_bundle(out).files
    except CompressError:
        raise CompressError(
            f"{out}: not replaced, because it is not a complete bundle; give another folder, or move what is in it away first"
        ) from None
    foreign = [name for name in contents(out) if name not in listed and name != NAME]
    if foreign:
        raise CompressError(
            f"{out}: not replaced, because {foreign[0]!r} is not part of the bundle; move it away first"
        )


def check_name(folder: Path) -> None:
    """Raise CompressError if the path is not UTF-8, which ONNX and ONNX Runtime cannot open."""
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError:
        raise CompressError(
            f"{str(folder)!a}: its path is not UTF-8, which ONNX Runtime cannot open; use another folder"
        ) from None


def recover(out: Path) -> None:
    """Restore a bundle that a process moved aside from `out` for a new one before it was killed."""
    for place, aside in abandoned_paths(out.parent, OLD):
        if place.name == out.name:
            with suppress(OSError):  # `out` has files in it
                aside.replace(place)


@contextmanager
def building(out: Path) -> Iterator[Path]:
    """Yield a new folder beside `out`, for `move_checked` to move. On an error, remove the folder and the parents made for it.
    First remove what killed processes left beside `out`."""
    _sweep(out.parent)
    parents = [parent for parent in (out.parent, *out.parent.parents) if not parent.exists()]
    folder = temporary_path(out, BUILDING)
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        _remove(folder, parents)
        named = error.filename and error.errno != errno.ENOSPC  # of a copy, that is the file that was read
        reason = f"{error.strerror}: {error.filename}" if named else error.strerror
        raise CompressError(f"{out}: cannot be written ({reason}); nothing half-written was left behind") from None
    except BaseException:
        _remove(folder, parents)
        raise


def _sweep(parent: Path) -> None:
    """Remove what killed processes left; an old bundle only if a new one is in its place."""
    old = [aside for place, aside in abandoned_paths(parent, OLD) if (place / NAME).is_file()]
    for leftover in (*old, *(folder for _, folder in abandoned_paths(parent, BUILDING))):
        shutil.rmtree(leftover, ignore_errors=True)


def _remove(folder: Path, parents: list[Path]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for parent in parents:
        try:
            parent.rmdir()
        except OSError:
            return


def move_checked(folder: Path, out: Path, force: bool | None) -> None:
    """Move `folder` to `out`. Raises `CompressError` as `check_target` does: files may have come to `out` while `folder` was
    made."""
    check_target(out, force)
    try:
        move_into_place(folder, out, replaces=bool(force))
    except OSError:
        check_target(out, force)  # they came after the first check
        raise


def move_into_place(folder: Path, out: Path, *, replaces: bool = False) -> None:
    """Move `folder` to `out`, if that is free. An old bundle that it `replaces` is exchanged with it in one step, and then
    removed.

    `OSError`: `out` has files that are not to be replaced; they may have been added while `folder` was made.
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
    """Replace `out` on a disk without exchange: for a moment it is missing, and if the process is killed then, `recover`
    restores it."""
    aside = temporary_path(out, OLD)
    with suppress(OSError):  # the folder may belong to another user
        os.utime(out)  # a rename does not update it, and a day-old folder counts as abandoned
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
