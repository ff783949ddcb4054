"""One step of a campaign in its own process: `child.py WORK WHAT ANSWER`. ANSWER is a file, written at the end."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from pieces import cut

from compress.bundle import copy_checkpoint, ship
from compress.cli.display import Display
from compress.errors import CompressError, Interrupted
from compress.pipeline import Request, build_stage, run_all
from compress.processes import signals


def _request(what: dict[str, Any]) -> Request:
    return Request(
        (what["recipe"],),
        (what["task"],),
        teacher=what["teacher"],
        corpus=tuple(what["corpus"]),
        precision=what["precision"],
        overrides=tuple(what["overrides"]),
        data_dir=None if what["data_dir"] is None else Path(what["data_dir"]),
        root=Path(what["root"]),
        bench=None,
    )


def pretrain(what: dict[str, Any]) -> dict[str, Any]:
    """Run the `pretrained` stage alone and return its info. Copy the checkpoint to `what["checkpoint"]` unless that is null."""
    with Display() as display:
        artifact = build_stage(_request(what), "pretrained", display)
    if what["checkpoint"] is not None:
        out = Path(what["checkpoint"])
        shutil.rmtree(out, ignore_errors=True)
        copy_checkpoint(artifact.path, out)
    return artifact.info


def recipe(what: dict[str, Any]) -> dict[str, Any]:
    """Run a whole recipe without latencies."""
    with Display() as display:
        (result,) = run_all(_request(what), display)
    models = [
        {
            "label": f"{model.name} {model.precision}",
            "score": model.headline,
            "parameters": model.parameters,
            "megabytes": model.file_bytes / 1e6,
            "flip_rate": model.fidelity.flip_rate if model.fidelity else None,
        }
        for model in result.models
    ]
    return {"run": result.run, "task": result.task.title, "models": models}


def bundle(what: dict[str, Any]) -> dict[str, Any]:
    """Write the int8 bundle of a finished run; cut its files into pieces if `piece_bytes` is set."""
    out = Path(what["out"])
    shutil.rmtree(out, ignore_errors=True)
    ship(Path(what["run"]), out, store=Path(what["store"]), precisions=("int8",))
    if what["piece_bytes"] is not None:
        cut(out, what["piece_bytes"])
    files = [path for path in out.rglob("*") if path.is_file()]
    return {"files": len(files), "bytes": sum(path.stat().st_size for path in files)}


WORK = {"pretrain": pretrain, "recipe": recipe, "bundle": bundle}


def main() -> int:
    signals.install()
    work, what, path = sys.argv[1:]
    try:
        answer = WORK[work](json.loads(what))
    except (CompressError, Interrupted) as error:
        print(str(error), flush=True)
        return error.exit_code
    Path(path).write_text(json.dumps(answer, default=str) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
