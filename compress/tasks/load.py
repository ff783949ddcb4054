"""Find a task's data, read and check them, carve the tuning split; and the fingerprint that stands for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compress.errors import CompressError
from compress.places import from_home
from compress.spec.task import Files, TaskSpec

from .checks import Rows, label_names, to_split
from .data import Split, TaskData
from .delimited import read_table
from .fingerprints import fingerprint_of
from .glue import completeness, is_glue, official_paths, read_official
from .hub import local_folder, pinned_revision, read_hub, read_saved, reported_splits, saved_folder
from .synthetic import GENERATOR_VERSION, generate
from .tuning import carve, normalized


def fingerprint(spec: TaskSpec, folder: Path | None, data_dir: Path | None) -> str:
    """SHA-256 that changes with any byte of the data and any field of the spec that matters; parses nothing."""
    source, place = _locate(spec, folder, data_dir)
    if source == "synthetic":
        return fingerprint_of(spec, f"synthetic {GENERATOR_VERSION}", [])
    if source == "hub" and place is None:
        return fingerprint_of(spec, f"hub {pinned_revision(spec)}", [])
    if source == "files":
        files = official_paths(spec, data_dir) if data_dir is not None and is_glue(spec) else _own_paths(spec, folder)
        return fingerprint_of(spec, source, list(files.items()))
    if place is None:
        raise CompressError(f"task {spec.name}: no data")
    inside = sorted(path for path in place.rglob("*") if path.is_file() and not path.name.startswith("cache-"))
    return fingerprint_of(spec, source, [(path.relative_to(place).as_posix(), path) for path in inside])


def load_task(spec: TaskSpec, folder: Path | None, data_dir: Path | None) -> TaskData:
    """Read a task whole. `folder` is where a task file's relative paths start; `data_dir` holds GLUE's folders, or a
    saved `datasets` folder.

    Raises `CompressError` naming file and line for anything that cannot be used.
    """
    source, rows, notes = _read(spec, folder, data_dir)
    names = label_names(spec, rows["train"])
    splits = {name: to_split(spec, part, names, training=name == "train") for name, part in rows.items()}
    if is_glue(spec):
        notes += completeness(spec, {name: len(split) for name, split in splits.items()})
    train = splits.pop("train")
    notes += _absent_labels(train, names) + _shared_texts(train, splits)
    kept, held = carve(spec, train, rows["train"].place)
    return TaskData(
        spec=spec,
        labels=names,
        train=train.select(kept),
        tuning=train.select(held),
        reported=splits,
        source=source,
        notes=tuple(notes),
        fingerprint=fingerprint(spec, folder, data_dir),
    )


def check_data_dir(data_dir: Path | None, specs: Sequence[TaskSpec]) -> None:
    """Raises `CompressError` where `data_dir` is no folder, or none of these tasks reads it."""
    if data_dir is None:
        return
    if not data_dir.is_dir():
        raise CompressError(f"{data_dir}: no such folder; --data-dir is the folder that holds the task's data")
    if not any(spec.hub for spec in specs):
        names = ", ".join(spec.name for spec in specs)
        raise CompressError(
            f"--data-dir names data, and no task here reads it ({names}: data of their own); leave it out"
        )


def _locate(spec: TaskSpec, folder: Path | None, data_dir: Path | None) -> tuple[str, Path | None]:
    """The kind of source, and the folder of a saved or local data set."""
    if spec.files is not None:
        return "files", None
    if spec.hub is None:
        return "synthetic", None
    saved = saved_folder(spec, folder, data_dir)
    if saved is not None:
        return "saved", saved
    if data_dir is not None and is_glue(spec):
        return "files", None
    return "hub", local_folder(spec, folder)


def _read(spec: TaskSpec, folder: Path | None, data_dir: Path | None) -> tuple[str, dict[str, Rows], list[str]]:
    source, place = _locate(spec, folder, data_dir)
    if source == "synthetic":
        return source, _synthetic_rows(spec), []
    if source == "saved" and place is not None:
        return source, read_saved(spec, place), []
    if source == "hub":
        notes = (
            [] if data_dir is None else ["--data-dir holds none of its data, which are read from where the task says"]
        )
        return source, read_hub(spec, folder), notes
    if spec.files is None and data_dir is not None:
        return source, *read_official(spec, data_dir)
    return source, {name: _file_rows(spec, path) for name, path in _own_paths(spec, folder).items()}, []


def _own_files(spec: TaskSpec) -> Files:
    if spec.files is None:
        raise CompressError(f"task {spec.name}: has no `files`")
    return spec.files


def _own_paths(spec: TaskSpec, folder: Path | None) -> dict[str, Path]:
    files = _own_files(spec)
    dev = reported_splits(files.dev)
    if not dev or {"train", "tuning"} & set(dev):
        raise CompressError(
            f"task {spec.name}: files.dev: expected names other than train and tuning, found {list(dev)}"
        )
    return {name: (folder or Path()) / from_home(path) for name, path in {"train": files.train, **dev}.items()}


def _file_rows(spec: TaskSpec, path: Path) -> Rows:
    files = _own_files(spec)
    table = read_table(path, header=files.header, names=files.columns, quoting=files.quoting)
    if not table.columns:
        raise CompressError(f"{path}: no examples")
    texts = tuple(table.column(name) for name in spec.text)
    return Rows(table.place, table.unit, table.numbers, texts, table.column(spec.label))


def _synthetic_rows(spec: TaskSpec) -> dict[str, Rows]:
    if spec.synthetic is None:
        raise CompressError(f"task {spec.name}: has no `synthetic`")
    rows = {}
    for name, examples in generate(spec.synthetic).items():
        *texts, labels = map(list, zip(*examples, strict=True))
        if len(texts) != len(spec.text):
            made = f"{spec.synthetic.generator} makes {len(texts)}"
            raise CompressError(f"task {spec.name}: `text` names {len(spec.text)} columns, the generator {made}")
        rows[name] = Rows(f"{spec.name} {name}", "row", range(1, len(labels) + 1), tuple(texts), labels)
    return rows


def _absent_labels(train: Split, names: tuple[str, ...]) -> list[str]:
    present = set(np.unique(train.labels).tolist())
    absent = [name for index, name in enumerate(names) if index not in present]
    return [f"train has no example of the label {name!r}" for name in absent]


def _shared_texts(train: Split, reported: dict[str, Split]) -> list[str]:
    """A note per reported split that shares texts with train: scores on those say nothing about new texts."""
    known, notes = set(normalized(train)), []
    for name, split in reported.items():
        shared = sum(text in known for text in normalized(split))
        if shared:
            notes.append(f"{shared:,} of {len(split):,} {name} texts also stand in train")
    return notes
