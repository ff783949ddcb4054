"""Copy a checkpoint of a finished run to a folder of its own: any stage's, not only the one for a bundle."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ...errors import CompressError, did_you_mean
from ...results import CHECKPOINTS
from ...runtime.folder import read_json
from ..target import building, check_target, move_checked
from .source import artefact, check_one_run

_OURS = ("manifest.json", "log.jsonl")


def take_checkpoint(run: Path, out: Path, *, store: Path, name: str | None = None) -> Path:
    """Copy the checkpoint `name` of a finished `run` to `out`, a new folder; return its resolved path.

    `name` is a stage's as `compress plan` shows it, e.g. `pretrained`, `encoder` or `teacher`; default: the last one made.
    transformers loads it without this package, unless it is a static or a pruned model. Raises `CompressError`: the run, the
    name, artefacts that are missing or changed, `out`.
    """
    check_target(out, None)
    out, keys, path = out.resolve(), checkpoints_of(run), run / CHECKPOINTS
    if name is None:
        name = next(reversed(keys), "")
    if not isinstance(keys.get(name), str):
        raise CompressError(f"{path}: no checkpoint `{name}`{did_you_mean(name, [*keys])}")
    copy_checkpoint(artefact(store, keys[name], path), out)
    return out


def checkpoints_of(run: Path) -> dict[str, Any]:
    """Return the trained stages of a finished `run`, in order, each with the key of its artefact. Raises `CompressError`."""
    path = run / CHECKPOINTS
    if not run.is_dir():
        raise CompressError(f"{run}: expected a run directory, found {'a file' if run.exists() else 'nothing'}")
    if (run / "bundle.json").is_file():
        raise CompressError(f"{run}: is a bundle; expected the directory of the run that it was made of")
    check_one_run(run)
    if not path.is_file():
        raise CompressError(
            f"{run}: the run is not finished, or was made before runs listed their checkpoints: {CHECKPOINTS} is missing; "
            "give `compress run` again"
        )
    return read_json(path)


def copy_checkpoint(artefact: Path, out: Path) -> None:
    """Copy the `artefact` of a training stage, without our own records, to `out`, a new folder, atomically."""
    with building(out) as folder:
        for each in sorted(artefact.iterdir()):
            if each.name not in _OURS:
                shutil.copyfile(each, folder / each.name)
        move_checked(folder, out, None)
