"""Data sets of the Hugging Face hub, read with `datasets` at a pinned revision or from a saved folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import CompressError, did_you_mean, nearest
from ...files.paths import expand_home
from ...files.tabular import list_names
from ...hub import endpoint, error_text, find_cached, is_commit, load_splits, one_line, quiet_data_sets
from ...spec.task import Hub, TaskSpec
from ...store import hash_file
from ..reading.columns import Rows
from ..reading.spans import LABEL
from ..reading.text_columns import text_columns
from .glue import LAYOUTS, aliases, is_glue

MARKER = "dataset_dict.json"  # written by DatasetDict.save_to_disk


def hub_of(spec: TaskSpec) -> Hub:
    if spec.hub is None:
        raise CompressError(f"task {spec.name}: has no `hub`")
    return spec.hub


def local_folder(spec: TaskSpec, folder: Path | None) -> Path | None:
    """Return the folder that `hub.path` names, relative to the task's file; None if it names a hub id."""
    if folder is None:
        return None
    path = folder / expand_home(hub_of(spec).path)
    if path.is_dir():
        return path
    if hub_of(spec).path.startswith((".", "/", "~")):
        raise CompressError(f"{path}: no such folder; `hub.path` is a hub id such as owner/name, or a folder")
    return None


def dataset_id(spec: TaskSpec, folder: Path | None) -> str | None:
    """Return the hub id of the task's data set; None for files, and for a folder named in `hub.path`."""
    path = spec.hub.path if spec.hub is not None else ""
    if not path or path.startswith((".", "/", "~")) or local_folder(spec, folder) is not None:
        return None
    return path


def saved_folder(spec: TaskSpec, folder: Path | None, data_dir: Path | None) -> Path | None:
    """Return the folder of a DatasetDict saved for this task: the data directory, a folder in it with the task's name, or `hub.path`; None
    if there is none."""
    names = [spec.name, *([LAYOUTS[spec.name].folder] if is_glue(spec) else [])]
    data_dirs = [data_dir, *(data_dir / name for name in names)] if data_dir is not None else []
    candidates = [*data_dirs, local_folder(spec, folder)]
    return next((path for path in candidates if path is not None and (path / MARKER).is_file()), None)


def pinned_revision(spec: TaskSpec) -> str:
    """Return the commit of a hub data set. Raises `CompressError` for a branch or none, since its contents may change."""
    hub = hub_of(spec)
    if not is_commit(hub.revision):
        raise CompressError(
            f"task {spec.name}: hub.revision: expected a commit (40 hexadecimal digits), found {hub.revision!r}; "
            f"{endpoint()}/datasets/{hub.path}/commits/main lists them"
        )
    return str(hub.revision)


def read_saved(spec: TaskSpec, path: Path, splits: dict[str, str]) -> dict[str, Rows]:
    """Return the splits of a saved folder. `splits`: name in results -> split of the folder."""
    import datasets

    try:
        with quiet_data_sets():
            loaded: Any = datasets.load_from_disk(str(path))
    except Exception as error:
        raise CompressError(f"{path}: cannot be read as a saved DatasetDict: {one_line(error)}") from error
    for split in splits.values():
        if split not in loaded:
            raise CompressError(f"{path}: no split {split!r}{did_you_mean(split, list(loaded))}")
    return {name: _rows_of(spec, f"{path} split {split}", loaded[split]) for name, split in splits.items()}


def read_hub(spec: TaskSpec, folder: Path | None, splits: dict[str, str]) -> dict[str, Rows]:
    """Return the `splits` (name in results -> split) of the data set at its revision, or of the folder in `hub.path`, laid out like a hub
    repository."""
    hub, local, names = hub_of(spec), local_folder(spec, folder), list(splits.values())
    path = str(local or hub.path)
    try:
        if local is None:
            loaded = load_splits(
                path, hub.name, pinned_revision(spec), names, "give the data as files with --data-dir DIR"
            )
        else:
            loaded = _of_a_folder(path, hub.name, names)
    except CompressError as error:
        raise CompressError(f"{error}{_field(str(error))}") from error
    parts = zip(splits.items(), loaded, strict=True)
    return {name: _rows_of(spec, f"data set {path} split {split}", part) for (name, split), part in parts}


def is_cached(spec: TaskSpec) -> bool:
    """Whether the hub's cache has the data set at its revision, so that no download is needed."""
    hub = hub_of(spec)
    return is_commit(hub.revision) and find_cached(hub.path, hub.name, str(hub.revision)) is not None


def _of_a_folder(path: str, config: str | None, splits: list[str]) -> list[Any]:
    import datasets

    try:
        with quiet_data_sets():
            loaded: Any = datasets.load_dataset(path, config, split=splits, cache_dir=_own_cache(Path(path)))
    except Exception as error:  # the library raises a dozen unrelated types: layout, configuration, split
        raise CompressError(f"data set {path}: cannot be read: {error_text(error)}") from error
    return loaded


def _own_cache(folder: Path) -> str:
    """Return a cache folder for exactly these contents: `datasets` distinguishes local files only by their times, which copies may keep."""
    from datasets import config

    contents = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        contents.update(f"{path.relative_to(folder).as_posix()}\0{hash_file(path)}\0".encode())
    return str(Path(config.HF_DATASETS_CACHE).expanduser() / f"compress-{contents.hexdigest()[:16]}")


def _field(message: str) -> str:
    """Return a hint at the field of the task file that caused an error."""
    if "BuilderConfig" in message or "Config name is missing" in message:
        return "; `hub.name` in the task file names a configuration"
    return (
        "; `hub.train`, `hub.tuning` and `hub.dev` in the task file name splits" if "Unknown split" in message else ""
    )


def _rows_of(spec: TaskSpec, place: str, part: Any) -> Rows:
    known = part.column_names

    def column(name: str) -> list[Any]:
        if name not in known:
            raise CompressError(f"{place}: no column {name!r}{nearest(name, known)}; it has {list_names(known)}")
        return part[name][:]

    texts = text_columns(spec, known, column)
    for name in spec.label_columns:
        column(name)
    labels, declared = _labels(spec, part)
    names: Mapping[str, str] | None = aliases(spec) if declared is None and is_glue(spec) else None
    return Rows(place, "row", range(1, len(labels) + 1), texts, labels, names, declared)


def _labels(spec: TaskSpec, part: Any) -> tuple[list[Any], tuple[str, ...] | None]:
    """Return labels, and the names that the data set declares, in id order."""
    if not isinstance(spec.label, str):
        return list(zip(*(part[name][:] for name in spec.label), strict=True)), None
    values, feature = part[spec.label][:], part.features[spec.label]
    return [_replace_ids(value, feature) for value in values], _declared_names(feature)


def _declared_names(feature: Any) -> tuple[str, ...] | None:
    """Return the names of a ClassLabel, in a list or not, or of the labels of spans."""
    if isinstance(feature, dict):
        return _declared_names(feature.get(LABEL))
    inner = getattr(feature, "feature", None)  # of a column of lists
    return (tuple(getattr(feature, "names", None) or ()) or None) if inner is None else _declared_names(inner)


def _replace_ids(value: Any, feature: Any) -> Any:
    """Return the value with ids of a ClassLabel replaced by names, at any depth of lists and objects; -1 (hidden) and nulls are
    unchanged."""
    if value is None:
        return None
    if isinstance(feature, dict):
        return {key: _replace_ids(part, feature[key]) for key, part in value.items()}
    inner, names = getattr(feature, "feature", None), getattr(feature, "names", None)
    if inner is not None:
        return [_replace_ids(part, inner) for part in value]
    return names[value] if names and 0 <= value < len(names) else value
