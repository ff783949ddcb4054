"""Where a bundle goes: never over anything but a bundle, whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import CompressError
from ..store.manifest import sync
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


@contextmanager
def building(out: Path) -> Iterator[Path]:
    """A folder beside `out`, gone afterwards whatever happens; so are parents made for it, when it fails."""
    made = [parent for parent in (out.parent, *out.parent.parents) if not parent.exists()]
    folder = out.parent / f".{out.name}.{secrets.token_hex(4)}.building"
    try:
        folder.mkdir(parents=True)
        yield folder
    except OSError as error:
        _remove(folder, made)
        reason = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        raise CompressError(f"{out}: cannot be written ({reason}); nothing was left behind") from None
    except BaseException:
        _remove(folder, made)
        raise


def _remove(folder: Path, made: list[Path]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for parent in made:
        try:
            parent.rmdir()
        except OSError:
            return


def settle(folder: Path, out: Path) -> None:
    """Rename into place. An old bundle steps aside first and comes back if the new one cannot take its place."""
    for path in [*sorted(folder.rglob("*")), folder]:
        sync(path)
    if not out.exists() or not any(out.iterdir()):
        folder.replace(out)
    else:
        aside = folder.with_suffix(".old")
        out.replace(aside)
        try:
            folder.replace(out)
        except BaseException:
            aside.replace(out)
            raise
        shutil.rmtree(aside, ignore_errors=True)
    sync(out.parent)
