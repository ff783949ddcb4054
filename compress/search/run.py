"""A search: each trial builds a recipe's last model from the store and scores it on the tuning split; the front is run whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .. import store
from ..errors import CheckFailed, CompressError
from ..machine import cpu_name, versions
from ..models.checkpoints import load_tokenizer, pad_id
from ..models.dimensions import read_config, usable_positions
from ..pipeline import BenchSettings, Listener, Plan, Request, build_stage, plan_all, run_all
from ..pipeline.plan.students import resolve_student
from ..pipeline.request import command_line, load_recipe
from ..provenance import manifest_fields
from ..results import Result
from ..runtime.folder import MODEL_FILES
from ..store import Artifact, Store
from ..tasks import gold_of, headline, score
from .limits import Choice, Limits, Measured, choose, front
from .space import RECIPE, STUDENT, Axis, Point, overrides_of
from .study import Outcome, Search, Trial, check_optuna

FOLDER = "search"  # below --out
LATENCY_VERSION = 1
_LENGTH, _RUNS = 128, 30
_KEPT = 0.95  # of the parameters of embeddings and layers: an exported graph may fold a few into others


@dataclass(frozen=True)
class Found:
    """All trials, those of the front, the choice, and the run of each of the front, by the trial's number."""

    trials: list[Trial]
    front: list[Measured]
    choice: Choice
    runs: dict[int, Result]


def search(
    request: Request, limits: Limits, axes: Sequence[Axis], trials: int, listener: Listener | None = None
) -> Found:
    """Up to `trials` of the request's recipes with the values of `axes`, kept in `search` below the request's root.

    The tuning split alone decides; the reported split is read once, for the front. Raises `CompressError` for wrong input before
    any work, and what `run_all` raises.
    """
    check_optuna()
    listener = listener or Listener()
    recipes = Axis(RECIPE, tuple(str(word) for word in request.recipes))
    stages = _checked(request, axes)
    identity = {
        "recipes": list(recipes.values),
        "axes": [asdict(axis) for axis in axes],
        "limits": asdict(limits),
        "asked": [str(value) for value in (request.tasks, request.own, request.teacher, request.overrides)],
        "seed": request.seeds[0],
    }
    study = Search(request.root / FOLDER, identity, (recipes, *axes), stages, objectives=2, seed=request.seeds[0])

    def work(number: int, point: Point) -> Outcome:
        listener.outlook(f"trial {number}: {' '.join(f'{name}={value}' for name, value in point.items())}")
        return _outcome(number, point, request, limits, listener)

    finished = study.run(trials, work)
    measured: dict[str, Measured] = {}
    for trial in finished:
        if trial.refused is None:
            measured.setdefault(json.dumps(trial.point, sort_keys=True), Measured(trial.number, **trial.info))
    choice = choose(list(measured.values()), limits)
    best = front(list(measured.values()))
    points = {trial.number: trial.point for trial in finished}
    bench = BenchSettings()
    runs = {
        model.number: run_all(replace(_request(request, points[model.number]), bench=bench), listener)[0]
        for model in best
    }
    return Found(finished, best, choice, runs)


def _checked(request: Request, axes: Sequence[Axis]) -> dict[str, set[str]]:
    """Recipe -> its stages. Raises `CompressError` for what no trial could take."""
    if len(request.seeds) != 1 or len(request.tasks) > 1:
        raise CompressError("search: expected one task and one seed; search for them one by one")
    recipes = {str(word): load_recipe(str(word)) for word in request.recipes}
    stages = {word: {stage.id for stage in recipe.stages} for word, recipe in recipes.items()}
    for axis in axes:
        having = [word for word, found in stages.items() if axis.stage in found]
        if not having:
            raise CompressError(f"--try {axis.name}: none of {', '.join(recipes)} has a stage `{axis.stage}`")
        for value in axis.values:
            if axis.name == STUDENT:
                resolve_student(str(value))
            else:
                for word in having:
                    load_recipe(word, overrides_of({axis.name: value}))
    return stages


def _request(request: Request, point: Point) -> Request:
    own = {STUDENT: point[STUDENT]} if STUDENT in point else {}
    overrides = (*request.overrides, *overrides_of(point))
    return replace(request, recipes=(point[RECIPE],), overrides=overrides, bench=None, **own)


def command_of(request: Request, point: Point) -> str:
    """The `compress run` of a point."""
    asked = replace(_request(request, point), bench=BenchSettings())
    return command_line(asked, plan_all(asked)[0])


def _outcome(number: int, point: Point, request: Request, limits: Limits, listener: Listener) -> Outcome:
    asked = _request(request, point)
    try:
        (plan,) = plan_all(asked)
    except CompressError as error:  # values that do not fit each other, such as a student and this teacher
        return Outcome(refused=str(error))
    if why := _too_large(plan, limits):
        return Outcome(refused=why)
    try:
        artifact = build_stage(asked, plan.models[-1], listener)
    except CheckFailed as error:  # such as a training that learnt nothing; the others go on
        return Outcome(refused=str(error))
    measured = _measured(number, plan, artifact, Store(request.root / ".store"), limits)
    cost = measured.size_mb if measured.latency_ms is None else measured.latency_ms
    info: dict[str, Any] = {name: value for name, value in asdict(measured).items() if name != "number"}
    return Outcome((-measured.score, cost), limits.violations(measured), info=info)


def _too_large(plan: Plan, limits: Limits) -> str | None:
    """Why the file of the last model cannot meet the limit, by its parameters alone; a vocabulary that is to be cut says
    nothing yet."""
    if limits.max_size_mb is None or any(stage.kind in ("vocabulary", "prune") for stage in plan.recipe.stages):
        return None
    name, _, precision = plan.models[-1].rpartition("-")
    sizes = plan.sizes[name]
    least = (sizes.embedding_parameters + sizes.layer_parameters) * (4 if precision == "fp32" else 1) * _KEPT / 1e6
    if least <= limits.max_size_mb:
        return None
    return f"--max-size-mb: expected at most {limits.max_size_mb:g} MB, found at least {least:.4g} MB by its parameters"


def _measured(number: int, plan: Plan, artifact: Artifact, cache: Store, limits: Limits) -> Measured:
    from ..evaluate import predict_onnx

    name, _, precision = plan.models[-1].rpartition("-")
    keys = {node.id: node.key for node in plan.nodes}
    checkpoint, onnx = cache.path(keys[plan.checkpoint(name)]), artifact.path / MODEL_FILES[precision]
    data = plan.task.data
    encoded = plan.task.encoded("tuning", load_tokenizer(checkpoint), data.spec.max_length)
    config = read_config(checkpoint)
    logits = predict_onnx(onnx, encoded, pad_id(config), threads=1)
    points = headline(score(data.spec, data.labels, logits, gold_of(data.spec, data.tuning)))
    length = min(_LENGTH, data.spec.max_length, usable_positions(config))
    latency = None if limits.max_latency_ms is None else _latency(onnx, artifact.key, length, cache)
    return Measured(number, points, onnx.stat().st_size / 1e6, latency)


def _latency(onnx: Path, model: str, length: int, cache: Store) -> float:
    """CPU milliseconds of one text of `length` tokens on one thread, the median; kept, so that it is measured once."""
    spec = {"length": length, "runs": _RUNS}
    libraries = {"onnxruntime": versions()["onnxruntime"], "cpu": cpu_name()}
    key = store.key("search_latency", LATENCY_VERSION, spec, {"model": model}, libraries)

    def make(out: Path, work: Path) -> dict[str, Any]:
        from ..bench import BenchSpec, Candidate, measure

        found = measure([Candidate("model", onnx, "onnx")], BenchSpec(((1, length),), runs=_RUNS))
        (out / "latency.json").write_text(json.dumps(found["model"].model_dump(mode="json")), encoding="utf-8")
        return {"cpu_ms": found["model"].latency[0].cpu_p50}

    return float(cache.build(key, make, describe=manifest_fields("bench", "latency of a trial")).info["cpu_ms"])
