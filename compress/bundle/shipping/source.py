"""What a run provides for a bundle: the chosen models, their files, and how their task feeds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ...errors import CompressError, did_you_mean
from ...results import MODELS, RESULT, SEVERAL, ModelResult, Result, read_result
from ...runtime.folder import MODEL_FILES, read_json
from ...store import Store

_OPTIONS = {"qdq": "portable", "avx2": "avx2"}  # the option that makes a form


@dataclass(frozen=True)
class Source:
    """A finished run with verified artefacts. `graphs`: precision -> ONNX file."""

    result: Result
    columns: tuple[str, ...]
    max_length: int
    models: dict[str, ModelResult]
    graphs: dict[str, Path]
    checkpoint: Path


def read_source(run: Path, store: Path, model: str | None, precisions: Sequence[str] = ()) -> Source:
    """Read a finished run. Raises `CompressError` for an unfinished run, an unknown model or form, and artefacts that are
    missing or changed."""
    result = finished_result(run)
    models = _chosen_models(run, result, model, precisions)
    paths = read_json(run / MODELS)
    graphs, checkpoints = {}, {}
    for precision, chosen in models.items():
        entry = model_entry(run, paths, f"{chosen.name}-{precision}")
        graphs[precision] = _graph(artefact(store, entry["onnx"], run / MODELS), precision)
        checkpoints[precision] = entry["checkpoint"]
    checkpoint = artefact(store, checkpoints[next(iter(checkpoints))], run / MODELS)
    columns, length = setting(run, result, "text", list), setting(run, result, "max_length", int)
    return Source(result, tuple(columns), length, models, graphs, checkpoint)


def check_one_run(run: Path) -> None:
    """Raise `CompressError` for a folder of runs."""
    if not (run / RESULT).exists() and (runs := sorted(path.parent.name for path in run.glob(f"*/{RESULT}"))):
        raise CompressError(f"{run}: is a folder of runs, not a run; name one of them, such as {run / runs[0]}")


def finished_result(run: Path) -> Result:
    """Return the result of a run whose models are listed. Raises `CompressError` for any other folder."""
    if not run.is_dir():
        raise CompressError(f"{run}: expected a run directory, found {'a file' if run.exists() else 'nothing'}")
    if (run / "bundle.json").is_file():
        raise CompressError(f"{run}: is a bundle; expected the run directory that it was made from")
    check_one_run(run)
    if (run / SEVERAL).is_file():
        raise CompressError(
            f"{run}: is a report, not a run; give `--from {run}` with limits, or the folder of one of its runs"
        )
    for name in (RESULT, MODELS):
        if not (run / name).is_file():
            raise CompressError(
                f"{run}: {name} is missing: not the folder of one run, or a run that is not finished; then give `compress run` "
                "again, it continues"
            )
    return read_result(run)


def _chosen_models(run: Path, result: Result, name: str | None, precisions: Sequence[str]) -> dict[str, ModelResult]:
    """Return the chosen forms of a model, fp32 first. `name` defaults to the last model made, `precisions` to all that it has."""
    if not result.models:
        raise CompressError(f"{run / RESULT}: models: expected at least one, found none")
    wanted = name or result.final.name
    chosen = {model.precision: model for model in result.models if model.name == wanted}
    if not chosen:
        known = sorted({model.name for model in result.models})
        raise CompressError(f"{run / RESULT}: no model `{wanted}`{did_you_mean(wanted, known)}")
    missing = [precision for precision in precisions if precision not in chosen]
    if missing:
        known = f"{wanted} has {', '.join(sorted(chosen))}"
        option = _OPTIONS.get(missing[0]) if "int8" in chosen else None
        advice = f"; `--set quantize.{option}=true` makes one" if option else ""
        raise CompressError(f"precision: expected a form that the run made ({known}), found {missing[0]!r}{advice}")
    wished = precisions or chosen
    return {precision: chosen[precision] for precision in ("fp32", "qdq", "avx2", "int8") if precision in wished}


def model_entry(run: Path, paths: dict[str, Any], name: str) -> dict[str, str]:
    entry = paths.get(name)
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("onnx", "checkpoint")):
        raise CompressError(f"{run / MODELS}: {name}: expected `onnx` and `checkpoint` paths, found {entry!r}")
    return entry


def artefact(store: Path, relative: str, where: Path) -> Path:
    """Return a path in the store that the run's file `where` names, after verifying its artefact byte by byte."""
    parts = PurePosixPath(relative).parts
    if not parts or parts[0] == "/" or ".." in parts:
        raise CompressError(f"{where}: expected paths inside the store, found {relative!r}")
    if not store.is_dir():
        raise CompressError(
            f"{store}: no such folder, and the run's artefacts are looked for in it; name the store, which is `.store` beside the run "
            "unless it was moved, or give `compress run` again"
        )
    shelf = Store(store)
    if shelf.find(parts[0]) is None:
        problem = shelf.last_problem or f"{shelf.path(parts[0])} is gone"
        raise CompressError(
            f"{where.parent}: its artefact cannot be used: {problem}; give `compress run` again, it rebuilds it"
        )
    path = store / relative
    if not path.exists():
        raise CompressError(f"{where}: {path}: no such file in its artefact; give `compress run` again")
    return path


def _graph(path: Path, precision: str) -> Path:
    return path / MODEL_FILES[precision] if path.is_dir() else path


def setting(run: Path, result: Result, name: str, kind: type) -> Any:
    value = result.settings.get(name)
    if not isinstance(value, kind) or not value:
        raise CompressError(f"{run / RESULT}: settings.{name}: expected a {kind.__name__}, found {value!r}")
    return value
