"""Measurements -> the run directory: result.json, predictions.npz, models.json, checkpoints.json, log.jsonl."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .. import results, statistics, store
from ..machine import describe, versions
from ..spec.recipe import Stage
from ..store import Artifact
from ..tasks import TaskData, headline, score
from .context import Context
from .draft import KINDS
from .faithful import fidelity
from .measure import BenchSettings, Model
from .plan import Plan

Predictions = dict[str, dict[str, np.ndarray]]
_PER_TOKEN_LENGTH = 128


# Bump when the same measurements make another result: other statistics, other fields.
RESULT_VERSION = 2


def described(plan: Plan) -> str:
    """Stands for what a result says beside its measurements: the cards, the task, the code that puts it together."""
    cards = {
        "recipe": plan.recipe.model_dump(mode="json"),
        "teacher": plan.teacher.card.model_dump(mode="json"),
        "student": plan.student.model_dump(mode="json") if plan.student else None,
        "task": plan.task.spec.model_dump(mode="json"),
    }
    return store.key("result", RESULT_VERSION, cards, {}, {"bert-compress": versions()["bert-compress"]})


@dataclass(frozen=True)
class Made:
    """All that a run made and measured."""

    artifacts: dict[str, Artifact]
    cached: dict[str, bool]
    models: list[Model]
    logits: Predictions
    runtimes: dict[str, results.Runtime]
    measurements: list[str]


def build_result(
    plan: Plan, context: Context, made: Made, settings: BenchSettings | None, command: str
) -> results.Result:
    """Everything a reader needs to trust the run, in one object."""
    artifacts = made.artifacts
    data = context.task.data
    records = [_model_result(plan, context, model, made) for model in made.models]
    again = made.runtimes.get("baseline again")
    return results.Result(
        run=plan.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        command=command,
        recipe=resolved_recipe(plan),
        teacher=plan.teacher.card.name,
        student=plan.student.name if plan.student else None,
        seed=plan.seed,
        task=task_info(context),
        machine=describe(),
        versions=versions(),
        stages=tuple(
            results.StageRecord(
                kind=node.label,
                key=node.key,
                cached=made.cached[node.id],
                seconds=artifacts[node.id].seconds,
                info={**_spec(node.spec), **artifacts[node.id].info},
            )
            for node in plan.nodes
        ),
        models=tuple(records),
        noise=again.latency if again else (),
        settings={
            "precision": context.precision,
            "threads": context.threads,
            "base_seed": plan.base_seed,
            "bench": {"runs": settings.runs, "warmup": settings.warmup, "threads": settings.threads}
            if settings
            else None,
            "tuning_examples": len(data.tuning),
            "measurements": made.measurements,
            "notices": list(context.notices),
            "published": _published(plan, context),
            "teacher_licence": plan.teacher.card.licence,
            "teacher_hub": plan.teacher.card.checkpoint.hub if plan.teacher.card.checkpoint else None,
            "max_length": data.spec.max_length,
            "text": list(data.spec.text),
        },
    )


def resolved_recipe(plan: Plan) -> dict[str, Any]:
    """The recipe with everything decided: the cards' settings, the teacher, student and precision."""
    specs = {node.stage: node.spec for node in plan.nodes}
    made = [stage for stage in plan.recipe.stages if stage.id in specs or stage.kind == "finetune"]
    stages = [{stage.kind: _named(stage) | _written(specs.get(stage.id) or stage.spec)} for stage in made]
    document = plan.recipe.model_dump(mode="json", exclude_none=True)
    student = {"student": plan.student.name} if plan.student else {}
    return {**document, "teacher": plan.teacher.card.name, **student, "precision": plan.precision, "stages": stages}


def _named(stage: Stage) -> dict[str, Any]:
    return {"name": stage.id} if stage.id != stage.kind else {}


def _written(spec: Any) -> dict[str, Any]:
    return spec.model_dump(mode="json", exclude={"per_task"}, exclude_none=True)


def _spec(spec: Any) -> dict[str, Any]:
    return {"spec": _written(spec)} if hasattr(spec, "model_dump") else {}


def task_info(context: Context) -> results.TaskInfo:
    data, spec = context.task.data, context.task.data.spec
    rows = {"train": len(data.train), "tuning": len(data.tuning)}
    rows |= {name: len(split) for name, split in data.reported.items()}
    return results.TaskInfo(
        name=spec.name,
        title=spec.title or spec.name,
        kind=spec.kind,
        labels=data.labels,
        metrics=spec.metrics,
        splits=tuple(data.reported),
        data=results.Data(source=data.source, rows=rows, notes=data.notes, fingerprint=data.fingerprint),
    )


def _published(plan: Plan, context: Context) -> dict[str, float]:
    task = context.task.spec.name
    return {source: scores[task] for source, scores in plan.teacher.card.published.items() if task in scores}


def _model_result(plan: Plan, context: Context, model: Model, made: Made) -> results.ModelResult:
    baseline, logits = made.models[0], made.logits
    data, sizes = context.task.data, plan.sizes[model.name]
    mine = logits[model.label]
    scores = {split: score(data.spec, data.labels, mine[split], data.reported[split].labels) for split in mine}
    first = next(iter(data.reported))
    length = _mean_length(model, context)
    return results.ModelResult(
        name=model.name,
        precision=model.precision,  # type: ignore[arg-type]
        architecture=str(sizes),
        parameters=sizes.parameters,
        embedding_parameters=sizes.embedding_parameters,
        flops_per_token=round(sizes.flops_per_token(_PER_TOKEN_LENGTH)),
        flops_per_example=round(sizes.flops_per_example(length)),
        file_bytes=model.onnx.stat().st_size,
        scores=scores,
        headline=headline(scores[first]),
        delta=None if model is baseline else _delta(context, first, logits[baseline.label][first], mine[first]),
        predictions=model.label,
        onnx=made.runtimes.get(model.label),
        torch_eager=made.runtimes.get(f"{model.name}-torch") if model.precision == "fp32" else None,
        fidelity=_fidelity(context, model, first, logits),
        info=made.artifacts[model.label].info,
    )


def _fidelity(context: Context, model: Model, split: str, logits: Predictions) -> results.Fidelity | None:
    """Beside the fp32 file of the same checkpoint, which every quantized one is made from."""
    if model.precision == "fp32":
        return None
    reference, data = f"{model.name}-fp32", context.task.data
    fp32, int8 = logits[reference][split], logits[model.label][split]
    against = {"reference": reference, "split": split, "delta": _delta(context, split, fp32, int8)}
    return fidelity(fp32, int8, data.reported[split].labels, data.labels, **against)


def _mean_length(model: Model, context: Context) -> float:
    from ..models.checkpoints import load_tokenizer

    tokenizer = load_tokenizer(model.checkpoint.path)
    return float(context.task.encoded("tuning", tokenizer, context.task.spec.max_length).lengths.mean())


def _delta(context: Context, split: str, base: np.ndarray, other: np.ndarray) -> results.Delta:
    data = context.task.data
    gold = data.reported[split].labels
    points, low, high = statistics.paired_bootstrap(
        statistics.Headline(data.spec.metrics, _positive(data)), base, other, gold
    )
    p = None
    if data.spec.metrics == ("accuracy",):
        p = statistics.mcnemar(base.argmax(1) == gold, other.argmax(1) == gold)
    return results.Delta(points=points, low=low, high=high, mcnemar_p=p)


def _positive(data: TaskData) -> int:
    return data.labels.index(data.spec.positive) if data.spec.positive else -1


def write_run(folder: Path, result: results.Result, plan: Plan, context: Context, made: Made, store_root: Path) -> None:
    """The run's files, made apart and moved to `folder` with the result last: without it a run is not finished. An older
    run's go first, with its report; what else lies there stays as it is."""
    building = store_root / ".building" / folder.name
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    _fill_run(building, result, plan, context, made, store_root)
    folder.mkdir(parents=True, exist_ok=True)
    reported = results.REPORT if results.is_report(folder) else ()
    for name in (results.RESULT, *reported):
        (folder / name).unlink(missing_ok=True)
    for path in sorted(building.iterdir(), key=lambda path: path.name == results.RESULT):
        path.replace(folder / path.name)
    building.rmdir()


def _fill_run(folder: Path, result: results.Result, plan: Plan, context: Context, made: Made, store_root: Path) -> None:
    arrays = {f"{label}/{split}": array for label, splits in made.logits.items() for split, array in splits.items()}
    arrays |= {f"gold/{split}": part.labels for split, part in context.task.data.reported.items()}
    np.savez_compressed(folder / results.PREDICTIONS, allow_pickle=False, **arrays)
    paths = {
        model.label: {
            "onnx": model.onnx.relative_to(store_root).as_posix(),
            "checkpoint": model.checkpoint.path.relative_to(store_root).as_posix(),
        }
        for model in made.models
    }
    (folder / results.MODELS).write_text(json.dumps(paths, indent=1) + "\n", encoding="utf-8")
    kept = [node.id for node in plan.nodes if KINDS[node.kind].checkpoint]
    checkpoints = {name: made.artifacts[name].path.relative_to(store_root).as_posix() for name in kept}
    (folder / results.CHECKPOINTS).write_text(json.dumps(checkpoints, indent=1) + "\n", encoding="utf-8")
    _merge_logs(folder / "log.jsonl", {node.id: made.artifacts[node.id].path / "log.jsonl" for node in plan.nodes})
    results.write_result(result, folder)


def _merge_logs(path: Path, logs: dict[str, Path]) -> None:
    """The training logs of the run's stages, one after the other, each line with what its stage made."""
    with path.open("w", encoding="utf-8") as out:
        for name, log in logs.items():
            if log.exists():
                with log.open(encoding="utf-8") as lines:
                    for line in lines:
                        out.write(f'{{"model": "{name}", {line[1:]}')
