"""The run directory: result.json, predictions.npz, models.json, checkpoints.json, log.jsonl; written, and read if it is finished."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ... import results
from ...errors import CompressError
from ...files.atomic import sync
from ..plan import Plan
from .assemble import RunOutputs


def stored_result(folder: Path, measurements: list[str]) -> results.Result | None:
    """Return the stored result if it is of the same measurements; a latency measurement may follow them. None also if one of the run's
    files is missing or damaged: the stages in the store make it again."""
    try:
        for name in (results.MODELS, results.CHECKPOINTS):
            json.loads((folder / name).read_text(encoding="utf-8"))
        with (folder / results.PREDICTIONS).open("rb") as stream, np.load(stream, allow_pickle=False):
            pass  # its list of arrays, at the end of the file, can be read
        result = results.read_result(folder)
    except (CompressError, OSError, ValueError, BadZipFile):
        return None
    keys = result.settings.get("measurements")
    return result if isinstance(keys, list) and keys[: len(measurements)] == measurements else None


def write_run(folder: Path, result: results.Result, plan: Plan, outputs: RunOutputs, store_root: Path) -> None:
    """Write the run's files to a separate folder, then move them to `folder`, the result last: a run without it is not finished. An older
    run's result and report are deleted first; other files stay."""
    building = store_root / ".building" / folder.name
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    _fill_run(building, result, plan, outputs, store_root)
    folder.mkdir(parents=True, exist_ok=True)
    reported = results.REPORT if results.is_report(folder) else ()
    for name in (results.RESULT, *reported):
        (folder / name).unlink(missing_ok=True)
    for path in sorted(building.iterdir(), key=lambda path: path.name == results.RESULT):
        sync(path)
        path.replace(folder / path.name)
    building.rmdir()


def _fill_run(folder: Path, result: results.Result, plan: Plan, outputs: RunOutputs, store_root: Path) -> None:
    data = outputs.reported.data
    arrays = {
        f"{label}/{name}": array
        if name in data.splits
        else array[:, :1]  # only what scores are computed from: the rest is stored with the splits
        for label, logits in outputs.logits.items()
        for name, array in logits.items()
    }
    arrays |= {f"gold/{name}": gold for name, gold in outputs.gold.items()}
    counts = outputs.reported.token_counts(outputs.models[0].checkpoint.path)
    arrays |= {f"{results.TOKENS}/{name}": each for name, each in counts.items()}
    np.savez_compressed(folder / results.PREDICTIONS, allow_pickle=False, **arrays)
    paths = {
        model.label: {
            "onnx": model.onnx.relative_to(store_root).as_posix(),
            "checkpoint": model.checkpoint.path.relative_to(store_root).as_posix(),
        }
        for model in outputs.models
    }
    (folder / results.MODELS).write_text(json.dumps(paths, indent=1) + "\n", encoding="utf-8")
    kept = [node.id for node in plan.nodes if node.kind.checkpoint]
    checkpoints = {name: outputs.artifacts[name].path.relative_to(store_root).as_posix() for name in kept}
    (folder / results.CHECKPOINTS).write_text(json.dumps(checkpoints, indent=1) + "\n", encoding="utf-8")
    _merge_logs(folder / results.LOG, {node.id: outputs.artifacts[node.id].path / results.LOG for node in plan.nodes})
    results.write_result(result, folder)


def _merge_logs(path: Path, logs: dict[str, Path]) -> None:
    """Concatenate the training logs of the run's stages, adding to each line which model its stage made."""
    with path.open("w", encoding="utf-8") as out:
        for name, log in logs.items():
            if log.exists():
                with log.open(encoding="utf-8") as lines:
                    for line in lines:
                        out.write(f'{{"model": "{name}", {line[1:]}')
