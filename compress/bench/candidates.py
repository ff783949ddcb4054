"""Turn the command line's `[RUNTIME:]PATH` arguments into candidates with unique names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import CompressError, did_you_mean
from ..files.paths import expand_home
from ..models.checkpoints.weights import weight_files
from ..models.dimensions import read_config
from ..runtime.folder import MODEL_FILES
from ..sessions.checks import check_graph_file
from .runners import IMPORTS
from .spec import Candidate


@dataclass(frozen=True)
class _Entry:
    """`label`: the path whose last parts become the name: `least` parts, or more if another candidate shares them."""

    runtime: Any
    path: Path
    label: Path
    least: int

    def name(self, parts: int) -> str:
        tail = Path(*self.label.parts[-max(parts, self.least) :]).as_posix()
        return tail if self.runtime == "onnx" else f"{self.runtime}:{tail}"


def find_candidates(words: Sequence[str]) -> list[Candidate]:
    """Return a candidate for each graph of a bundle (fp32 first), each .onnx file and, after `torch:`, each checkpoint.

    Loads no model. CompressError: an unknown runtime, one whose package is not installed, a missing file, a file that is not an ONNX
    model, a file or checkpoint named twice, or no candidates at all.
    """
    entries = [entry for word in words for entry in _entries(word)]
    if not entries:
        raise CompressError("bench: expected bundles, .onnx files or checkpoints; found none")
    _check_twice(entries)
    return [Candidate(_name(entry, entries), entry.path, entry.runtime) for entry in entries]


def _entries(word: str) -> list[_Entry]:
    runtime, path = _split(word)
    whole = Path(os.path.abspath(path))  # noqa: PTH100 (`resolve` would follow a link to a name that the user does not know)
    if runtime == "torch":
        read_config(path)
        weight_files(path)
        return [_Entry(runtime, path, whole, 1)]
    if not path.exists():
        raise CompressError(f"{path}: no such bundle or file")
    files = _graphs(path) if path.is_dir() else [path]
    for file in files:
        check_graph_file(file)
    return [_Entry(runtime, file, whole / file.stem if path.is_dir() else whole, 2) for file in files]


def _split(word: str) -> tuple[str, Path]:
    """Return (runtime, path). Without `RUNTIME:`, and for an existing path with a colon in it, the runtime is ONNX Runtime."""
    runtime, colon, path = word.partition(":")
    if not colon or len(runtime) < 2 or Path(word).exists():  # one letter is a drive
        runtime, path = "onnx", word
    elif runtime not in IMPORTS:
        raise CompressError(f"{word}: no runtime {runtime!r}{did_you_mean(runtime, list(IMPORTS))}")
    for module in IMPORTS[runtime]:
        package = module.partition(".")[0]
        if find_spec(package) is None:
            raise CompressError(f"{word}: {runtime} needs the package {package}, which is not installed")
    if not path:
        raise CompressError(f"{word!r}: expected a path, found nothing")
    return runtime, expand_home(path)


def _graphs(bundle: Path) -> list[Path]:
    expected = [bundle / "onnx" / MODEL_FILES[precision] for precision in ("fp32", "qdq", "avx2", "int8")]
    inside = [path for path in expected if path.exists()]
    if not inside:
        raise CompressError(
            f"{bundle}: expected a bundle with onnx/model.onnx or onnx/model_quantized.onnx; found none"
            " (a checkpoint is given as torch:FOLDER)"
        )
    return inside


def _check_twice(entries: list[_Entry]) -> None:
    seen = set()
    for entry in entries:
        key = (entry.runtime, entry.path.resolve())
        if key in seen:
            raise CompressError(f"{entry.path}: given twice; leave one out (the first is measured twice anyway)")
        seen.add(key)


def _name(entry: _Entry, entries: list[_Entry]) -> str:
    """Return the shortest name that no other entry has; the whole path if links leave no unique one."""
    names = (entry.name(parts) for parts in range(1, len(entry.label.parts)))
    alone = (name for parts, name in enumerate(names, 1) if sum(other.name(parts) == name for other in entries) == 1)
    return next(alone, entry.name(len(entry.label.parts)))
