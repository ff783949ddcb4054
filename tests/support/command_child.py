"""Run as a child process by fault_runs: imports what the commands need once, without torch, then forks a process per command.

Stderr goes to `root`.errors in the folder. `harm` holds `do`, the command (`run`, `report`, `ship`, `force`, or `old`: the bundle
that `force` replaces); the arguments of disk_faults.install; `count`, to count touches and writes; `times`, how often to run the
command; and `exchange: false`, for a disk that cannot exchange two folders. What `run` computes and what a report draws is made
up; writing to disk is real.
"""

from __future__ import annotations

import io
import sys
import traceback
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import disk_faults
import numpy as np
import rich.console
from bundle_making import Run, make_run
from forking import serve

from compress import cli, pipeline, report, results
from compress.bundle import target
from compress.pipeline import run
from compress.report import page, render
from compress.store import Store
from compress.tasks import BUILTIN_TASKS, ReportedData, headline, score

IMPORTED = (page, render, report, rich.console)
KEY = "0" * 32
MODEL = SimpleNamespace(label="teacher-fp32")
NOBODY = SimpleNamespace(notice=lambda line: None)


class Noon:
    """A clock that always shows the same time, so that bundles can be compared byte by byte."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return datetime(2025, 1, 1, 12, tzinfo=UTC)


def make(out: Path, work: Path) -> dict[str, Any]:
    for name in ("model.onnx", "config.json"):
        (out / name).write_bytes(name.encode() * 20_000)
    return {}


def finish(result: results.Result, request: Any, _: Any) -> list[results.Result]:
    """Do what `run_all` does for a plan with one stage whose models all give the same predictions."""
    cache = Store(request.root / ".store")
    artifact = cache.build(KEY, make, describe={})
    spec: Any = SimpleNamespace(kind="classification", headline="first")
    dev: Any = SimpleNamespace(labels=np.arange(1000) % 2, texts=())
    reported: Any = SimpleNamespace(
        data=ReportedData(spec, ("no", "yes"), {"dev": dev}, ""),
        token_counts=lambda checkpoint: {"dev": np.full(1000, 9, np.int32)},
    )
    task = SimpleNamespace(spec=SimpleNamespace(kind="classification"))
    context: Any = SimpleNamespace(listener=NOBODY, task=task)
    models = [
        SimpleNamespace(label=model.predictions, onnx=artifact.path / "model.onnx", checkpoint=artifact)
        for model in result.models
    ]
    logits = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    document, measured = result.model_dump(mode="json"), {"measurements": ["cards", *("scores" for _ in models)]}
    scores = score(BUILTIN_TASKS["toy-sentiment"], result.task.labels, logits, dev.labels)
    for model in document["models"]:
        model |= {"scores": {"dev": scores}, "headline": headline(scores)}
    fakes: dict[str, Any] = {
        "models_of": models,
        "predictions": (SimpleNamespace(key="scores"), {"dev": logits}),
        "measured_similarity": (None, None),
        "result_key": "cards",
        "command_line": "",
        "build_result": results.Result.model_validate(document | {"settings": document["settings"] | measured}),
    }
    for name, value in fakes.items():
        assert hasattr(run, name)
        setattr(run, name, lambda *_, value=value: value)
    plan: Any = SimpleNamespace(name=result.run, notes=(), nodes=(), teachers={"teacher": None})
    return [run._run(plan, request, context, reported, cache)]


def arguments(do: str, toy_run: Run, root: Path) -> list[str]:
    bundle = ["ship", str(toy_run.folder), "-o", str(root / "bundle"), "--store", str(toy_run.store)]
    return {
        "run": ["run", "distilbert", "--task", "toy-sentiment", "--out", str(root / "runs"), "--no-bench", "-q"],
        "report": ["report", str(toy_run.folder), "-o", str(root / "report")],
        "old": [*bundle, "--model", "teacher"],
        "ship": bundle,
        "force": [*bundle, "--force"],
    }[do]


def command(harm: dict[str, Any], toy_run: Run, root: Path) -> int:
    sys.argv = ["compress", *arguments(harm["do"], toy_run, root)]
    for _ in range(harm.get("times", 1)):
        try:
            cli.main()
        except SystemExit as end:
            return int(end.code or 0)
        except BaseException:
            traceback.print_exc()
            return 99
    return 0


def child(toy_run: Run, result: results.Result, folder: Path, root: Path, harm: dict[str, Any]) -> int:
    root.mkdir(exist_ok=True)
    sys.stdout = io.StringIO()
    sys.stderr = (folder / f"{root.name}.errors").open("w", buffering=1)
    drawing = "<svg/>\n" * 3000
    pictures = ("plot", "sizes", "reliability", "similarity", "html_report")
    made_up: list[tuple[Any, str, Any]] = [(render, name, lambda *_: drawing) for name in pictures]
    made_up += [
        (sys.modules["compress.bundle.shipping.ship"], "datetime", Noon),
        (pipeline, "run_all", partial(finish, result)),
    ]
    made_up += [(target, "exchange", lambda *_: False)] if harm.get("exchange") is False else []
    for module, name, value in made_up:
        setattr(module, name, value)
    disk_faults.install(harm, root)
    counts = disk_faults.count(root) if "count" in harm else None
    code = command(harm, toy_run, root)
    if counts:
        (folder / f"{root.name}.count").write_text(f"{counts[0]}\n{counts[1]}\n")
    return code


if __name__ == "__main__":
    toy_run = make_run(Path(sys.argv[1]) / "made")
    render.template("report.md.j2")
    serve(partial(child, toy_run, results.read_result(toy_run.folder)))
