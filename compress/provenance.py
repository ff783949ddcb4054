"""The origin of figures and artefacts: which code, which teacher, which text. Does not import torch."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from .errors import CheckFailed
from .fields import Spec
from .files.catalogue import KINDS, catalogue_folder
from .processes import children
from .store.hashing import canonical
from .version import __version__

_SUFFIXES = {".py", ".j2", ".css", ".js"}
_GIT_SECONDS = 5.0  # seconds for git: on a slow disk, the commit is not worth a longer wait


class Code(Spec):
    """The code that made something. `source` alone identifies it, in a checkout and installed alike."""

    version: str
    source: str = Field(description="SHA-256 of the package's source files and its catalogue")
    commit: str | None = Field(default=None, description="commit of the git checkout that it ran from")
    dirty: bool | None = Field(default=None, description="whether the package's files differed from that commit")

    def __str__(self) -> str:
        commit = "" if self.commit is None else f", commit {self.commit[:12]}{' with changes' if self.dirty else ''}"
        return f"{self.version}{commit}, source {self.source[:12]}"


class TeacherOrigin(Spec):
    """The origin of a teacher, or of a student's own checkpoint, before this project changed it. Contains no path."""

    kind: Literal["package", "hub", "folder", "random", "grown"]
    name: str = Field(description="name of the package, hub repository, folder, or card with random weights")
    revision: str | None = Field(default=None, description="commit of the hub repository, or version of the package")
    files: dict[str, str] = Field(description="weights, config and tokenizer as they were read: file name -> SHA-256")

    def __str__(self) -> str:
        weights = [f"{name} {digest[:12]}" for name, digest in self.files.items() if name.endswith(".safetensors")]
        revision = f" {self.revision[:12]}" if self.revision else ""
        return ", ".join([f"{self.kind} {self.name}{revision}", *weights])


class Corpus(Spec):
    """The plain text that stages read."""

    names: tuple[str, ...] = Field(
        description="names of the files, folders and data sets, as paths are shown: none from outside the folder the command ran in"
    )
    fingerprint: str = Field(description="SHA-256 of names and contents, in order")


@cache
def running_code() -> Code:
    """Return the code of this process, read once: what it builds belongs to that code, whatever is edited meanwhile."""
    commit, dirty = checked_out(Path(__file__).parents[1])
    return Code(version=__version__, source=source_hash(source_files()), commit=commit, dirty=dirty)


def source_files() -> dict[str, Path]:
    """Map names to the files that determine what the package does; the same names in a checkout and in an installed package."""
    package = Path(__file__).parent
    sources = {
        f"compress/{name}": path
        for path in package.rglob("*")
        if path.suffix in _SUFFIXES and not (name := path.relative_to(package).as_posix()).startswith("catalogue/")
    }
    cards = {f"{kind}/{path.name}": path for kind in KINDS for path in catalogue_folder(kind).glob("*.yaml")}
    return sources | cards


def source_hash(files: dict[str, Path]) -> str:
    """Return the hexadecimal SHA-256 of names and contents, independent of the order of files and of line endings."""
    hashes = [
        (name, hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest())
        for name, path in sorted(files.items())
    ]
    return hashlib.sha256(canonical(hashes)).hexdigest()


def checked_out(root: Path) -> tuple[str | None, bool | None]:
    """Return (commit, whether the package's files differ from it) of the git checkout at `root`; None for both if there is
    no checkout, it has no commit, or the package is in another project's repository."""
    if not (root / ".git").exists():
        return None, None
    status = ["git", "-C", root, "status", "--porcelain=v2", "--branch", "--untracked-files=normal"]
    # The variables that git sets for a hook may name another tree.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        lines = children.run(
            [*status, "--", "compress", *KINDS], _GIT_SECONDS, environment=ours | {"GIT_OPTIONAL_LOCKS": "0"}
        ).splitlines()
    except (OSError, CheckFailed):
        return None, None
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), "(initial)")
    if commit == "(initial)" or "? compress/" in lines:
        return None, None
    return commit, any(not line.startswith("#") for line in lines)


def manifest_fields(kind: str, label: str) -> dict[str, Any]:
    """Return what the manifest of an artefact built now records."""
    return {"kind": kind, "label": label, "code": running_code().model_dump(mode="json")}


def recorded_code(describe: dict[str, Any]) -> Code | None:
    """Return the code that built an artefact, from its manifest; None if that does not record it, as old ones do not."""
    try:
        return Code.model_validate(describe.get("code"))
    except ValidationError:
        return None
