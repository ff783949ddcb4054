"""The source of a task's data, and its splits as columns of unchecked rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ...errors import CompressError
from ...files.paths import expand_home
from ...files.tabular import DELIMITERS
from ...spec.kinds import KINDS
from ...spec.task import Files, TaskSpec
from ..reading.columns import Rows
from ..reading.delimited import read_table
from ..reading.plain_text import check_scored, is_plain_text, read_plain_text
from ..reading.tables import no_examples
from ..synthetic import GENERATOR_VERSION, generate
from .fingerprints import fingerprint_of
from .glue import aliases, is_glue, official_paths, read_official
from .hub import local_folder, pinned_revision, read_hub, read_saved, saved_folder
from .unread import unread_texts

OWN = ("train", "tuning")  # names not allowed for reported splits


@dataclass(frozen=True)
class Origin:
    """Source of a task's data. `folder`: where a task file's relative paths start; `data_dir`: GLUE's folders, or a saved `datasets`
    folder; `tuning`: a file for the tuning split, which replaces one in the task."""

    spec: TaskSpec
    folder: Path | None
    data_dir: Path | None
    tuning: Path | None = None

    @cached_property
    def location(self) -> tuple[str, Path | None]:
        """The type of source, and the folder of a saved or local data set."""
        if self.spec.files is not None:
            return "files", None
        if self.spec.hub is None:
            return "synthetic", None
        saved = saved_folder(self.spec, self.folder, self.data_dir)
        if saved is not None:
            return "saved", saved
        if self.data_dir is not None and is_glue(self.spec):
            return "files", None
        return "hub", local_folder(self.spec, self.folder)

    @cached_property
    def paths(self) -> dict[str, Path]:
        """Split -> file: all splits of a task read from files; for others, the given tuning split."""
        tuning = {} if self.tuning is None else {"tuning": self.tuning}
        if self.location[0] != "files":
            return tuning
        if self.spec.files is not None:
            return _own_paths(self.spec, self.spec.files, self.folder) | tuning
        return official_paths(self.spec, self.data_dir or Path()) | tuning

    def fingerprint(self) -> str:
        """Return a SHA-256 that changes with any byte of the data and any relevant field of the spec; parses nothing."""
        (source, place), files = self.location, list(self.paths.items())
        self._check_there(self.paths)
        if source == "synthetic":
            source = f"synthetic {GENERATOR_VERSION}"
        elif source == "hub" and place is None:
            source = f"hub {pinned_revision(self.spec)}"
        elif place is not None:
            inside = sorted(path for path in place.rglob("*") if path.is_file() and not path.name.startswith("cache-"))
            files += [(path.relative_to(place).as_posix(), path) for path in inside]
        if self.spec.hub is not None and self.spec.hub.tuning is not None and "tuning" not in self.paths:
            source += f" tuning {self.spec.hub.tuning}"
        if KINDS[self.spec.kind].unit == "question" and any(name == "tuning" for name, _ in files):
            source += " apart by context"  # such files are compared with reported splits by context
        if self.spec.kind == "multilabel" and any(path.suffix.lower() in DELIMITERS for _, path in files):
            source += " lists as JSON"  # lists of labels are read as JSON
        return fingerprint_of(self.spec, source, files)

    def read(self, wanted: Callable[[str], bool]) -> tuple[dict[str, Rows], list[str]]:
        """Return the splits whose names are `wanted`, and notes on how they were read."""
        source, place = self.location
        paths = {name: path for name, path in self.paths.items() if wanted(name)}
        self._check_there(paths)
        if source == "files" and self.spec.files is None:
            return read_official(self.spec, paths)
        rows = {name: _file_rows(self.spec, name, path) for name, path in paths.items()}
        if source == "synthetic":
            return {name: part for name, part in _synthetic_rows(self.spec).items() if wanted(name)} | rows, []
        if source == "files":
            return rows, []
        splits = {name: split for name, split in _hub_splits(self.spec).items() if wanted(name) and name not in rows}
        if source == "saved" and place is not None:
            return read_saved(self.spec, place, splits) | rows, []
        return read_hub(self.spec, self.folder, splits) | rows, _source_notes(self.spec, self.data_dir, place)

    def check_distinct(self) -> None:
        """Raise `CompressError` if a task file names one file for two splits."""
        split_of: dict[Path, str] = {}
        for name, path in self.paths.items() if self.spec.files is not None else ():
            other = split_of.setdefault(path.resolve(), name)
            if other != name and path != self.tuning:
                fields = _field_of(self.spec, name), _field_of(self.spec, other)
                raise CompressError(
                    f"{self.spec.file or f'task {self.spec.name}'}: {fields[0]}: expected other examples than {fields[1]}, "
                    f"found the same file {path}"
                )

    def _check_there(self, paths: Mapping[str, Path]) -> None:
        """Raise `CompressError`, with the field or option, if a file named in the task file or as the tuning split does not exist."""
        if self.tuning is not None and self.tuning in paths.values() and not self.tuning.exists():
            raise CompressError(f"--tuning: {self.tuning}: no such file")
        if self.spec.file is None or self.spec.files is None:
            return
        for name, path in paths.items():
            if path.exists() or path == self.tuning:
                continue
            raise CompressError(
                f"{self.spec.file}: {_field_of(self.spec, name)}: {path}: no such file; paths are relative to the task file's folder"
            )


def _source_notes(spec: TaskSpec, data_dir: Path | None, place: Path | None) -> list[str]:
    """Return notes if data come from elsewhere than the command or task suggests."""
    notes = [] if data_dir is None else ["--data-dir holds none of its data, which are read from where the task says"]
    if place is not None and spec.hub is not None and spec.hub.revision is not None:
        notes.append(
            f"data set {spec.hub.path}: read from the folder of that name beside the task file, not from the hub"
        )
    return notes


def _hub_splits(spec: TaskSpec) -> dict[str, str]:
    if spec.hub is None:
        raise CompressError(f"task {spec.name}: has no `hub`")
    tuning = {} if spec.hub.tuning is None else {"tuning": spec.hub.tuning}
    return {"train": spec.hub.train, **tuning, **_reported_splits(spec, "hub.dev")}


def _own_paths(spec: TaskSpec, files: Files, folder: Path | None) -> dict[str, Path]:
    tuning = {} if files.tuning is None else {"tuning": files.tuning}
    names = {"train": files.train, **_reported_splits(spec, "files.dev"), **tuning}
    return {name: (folder or Path()) / expand_home(path) for name, path in names.items()}


def _field_of(spec: TaskSpec, name: str) -> str:
    """Return the field of a task file that names the file of the split `name`."""
    if name in OWN:
        return f"files.{name}"
    return f"files.dev.{name}" if spec.files is not None and isinstance(spec.files.dev, dict) else "files.dev"


def _reported_splits(spec: TaskSpec, field: str) -> dict[str, str]:
    splits = spec.reported
    if not splits or set(OWN) & set(splits):
        raise CompressError(
            f"task {spec.name}: {field}: expected names other than {' and '.join(OWN)}, found {list(splits)}"
        )
    return splits


def _file_rows(spec: TaskSpec, name: str, path: Path) -> Rows:
    """Return the rows of a file. For a task without files of its own, its columns have the names in the task."""
    if name == "train" and is_plain_text(spec.kind, path):
        return read_plain_text(path)
    check_scored(str(path), spec.kind, path)
    files = spec.files or Files(train="", dev="")
    table = read_table(path, header=files.header, names=files.columns, quoting=files.quoting)
    if not table.columns:
        raise no_examples(str(path))
    names = aliases(spec) if is_glue(spec) else None
    return replace(Rows.of(table, spec), aliases=names, unread=unread_texts(table, spec))


def _synthetic_rows(spec: TaskSpec) -> dict[str, Rows]:
    if spec.synthetic is None:
        raise CompressError(f"task {spec.name}: has no `synthetic`")
    rows = {}
    for name, examples in generate(spec.synthetic).items():
        *texts, labels = map(list, zip(*examples, strict=True))
        if len(texts) != len(spec.text):
            actual = f"{spec.synthetic.generator} makes {len(texts)}"
            raise CompressError(f"task {spec.name}: `text` names {len(spec.text)} columns, the generator {actual}")
        rows[name] = Rows(f"{spec.name} {name}", "row", range(1, len(labels) + 1), tuple(texts), labels)
    return rows
