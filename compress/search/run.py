"""A search: each trial builds a recipe's last model with the store and scores it on the tuning split; the front is run in
full."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import CheckFailed, CompressError
from ..files.paths import display_path
from ..model_choice import Choice, Limits, Measured, choose, pareto_front
from ..models.checkpoints.folders import load_tokenizer, pad_id
from ..models.dimensions import read_config
from ..pipeline import BenchSettings, Listener, Plan, Request, build_stage, plan_all, run_all
from ..pipeline.data_notes import notes_before_training
from ..pipeline.plan.students import resolve_student
from ..pipeline.request import check_numbers, command_line, load_recipe, overrides_for, threads_of
from ..pipeline.stages.prune.budget import least_mb
from ..pipeline.stages.registry import STAGES
from ..processes.helpers import Helpers
from ..results import Result
from ..runtime.folder import MODEL_FILES
from ..store import Artifact, Store, key
from ..tasks import gold_of, headline, score
from .identity import FILES
from .latency import Latencies, cpu_milliseconds, length_of, shape_of, untrained_latency
from .sizes import KnownSizes, known_sizes
from .space import RECIPE, STUDENT, Axis, Point, check_names, overrides_of, parts_of, setting_path
from .study import Outcome, Search, Trial, check_optuna, first_reasons

FOLDER = "search"  # below --out
_KEPT = 0.95  # of a model's parameters: an exported graph may fold a few into others
_QUICKEST = 0.8  # another timing of the same model, or of a slightly wider one, may give this share of a time


@dataclass(frozen=True)
class SearchResult:
    """All trials, those of the front, the choice, and the run of each trial of the front, by its number."""

    trials: list[Trial]
    front: list[Measured]
    choice: Choice
    runs: dict[int, Result]


def search(
    request: Request,
    limits: Limits,
    axes: Sequence[Axis],
    trials: int,
    listener: Listener | None = None,
) -> SearchResult:
    """Run up to `trials` of the request's recipes with the values of `axes`, stored in `search` below the request's root and
    shared by its `jobs` processes.

    Only the tuning split decides; models are scored on the reported split once, for the front. Raises `CompressError` for wrong input
    before any work, and what `run_all` raises.
    """
    listener = listener or Listener()
    check_numbers(request)
    request, jobs = replace(request, jobs=1, threads=threads_of(request)), request.jobs
    study = open_search(request, limits, axes, listener)
    with Helpers(work_on, (request, limits, axes, trials), jobs - 1):
        finished = study.run(trials, _work(request, limits, listener))
    measured = [
        Measured(trial.number, **trial.info) for trial in finished if trial.refused is None and trial.same_as is None
    ]
    if not measured:
        study.discard()  # so that a corrected command can have the folder
        raise CompressError(f"search: no trial was measured; {first_reasons(finished)}")
    choice, best = choose(measured, limits), pareto_front(measured)
    points = {trial.number: trial.point for trial in finished}
    bench = _bench(limits)
    runs = {
        model.number: run_all(replace(_request(request, points[model.number]), bench=bench), listener)[0]
        for model in best
    }
    return SearchResult([trial for trial in finished if trial.same_as is None], best, choice, runs)


def work_on(request: Request, limits: Limits, axes: Sequence[Axis], trials: int) -> None:
    """Work on trials of a search, alongside other processes."""
    open_search(request, limits, axes).run(trials, _work(request, limits, Listener()))


def open_search(request: Request, limits: Limits, axes: Sequence[Axis], listener: Listener | None = None) -> Search:
    """Begin or continue the search in the request's root. The `listener`, if any, hears the notes with which a run begins. Raises
    `CompressError` for wrong input, and for a folder of another search; then nothing is written."""
    check_optuna()
    recipes = Axis(RECIPE, tuple(str(word) for word in request.recipes))
    parts = _check_request(request, axes)
    plans = _plannable(request, axes)
    plan = next(iter(plans.values()))
    if listener is not None:
        for line in notes_before_training([*plans.values()]):
            listener.notice(line)
    corpus = next((each.corpus for each in plans.values() if each.corpus is not None), None)
    identity = {
        "recipes": list(recipes.values),
        "axes": [[axis.name, list(axis.values)] for axis in axes],
        "limits": asdict(limits),
        "task": list(request.tasks) if request.own is None else {k: str(v) for k, v in asdict(request.own).items()},
        "data": plan.task.fingerprint,  # of --data-dir and --tuning too
        "corpus": None if corpus is None else corpus.fingerprint,
        "teacher": [request.teacher] if isinstance(request.teacher, str) else list(request.teacher or ()),
        "set": list(request.overrides),
        "precision": plan.precision,
        "refit": request.refit,
        "seed": request.seeds[0],
        FILES: {name: _files(each) for name, each in plans.items()},
    }
    return Search(request.root / FOLDER, identity, (recipes, *axes), parts, objectives=2, seed=request.seeds[0])


def _work(request: Request, limits: Limits, listener: Listener) -> Callable[[int, Point], Outcome]:
    latencies = Latencies(request.root / FOLDER)

    def work(number: int, point: Point) -> Outcome:
        listener.outlook(f"trial {number}: {' '.join(f'{name}={value}' for name, value in point.items())}")
        return _outcome(number, point, request, limits, latencies, listener)

    return work


def _files(plan: Plan) -> str:
    """Return a hash of the contents of the recipe, its teachers, its student and the files that stages name."""
    teachers = [[source.card.model_dump(mode="json"), source.identity] for source in plan.teachers.values()]
    student = [plan.student and plan.student.model_dump(mode="json"), plan.pretrained and plan.pretrained.identity]
    outside = {node.id: node.outside for node in plan.nodes}
    document = {"recipe": plan.recipe_document, "teachers": teachers, "student": student, "outside": outside}
    return key("search", 1, document, {}, {})


def _check_request(request: Request, axes: Sequence[Axis]) -> dict[str, set[str]]:
    """Return the parts of each recipe. Raises `CompressError` for input that no trial could use."""
    if len(request.seeds) != 1 or len(request.tasks) > 1:
        raise CompressError("search: expected one task and one seed; search for them one by one")
    recipes = {str(word): load_recipe(str(word)) for word in request.recipes}
    parts = {word: parts_of(recipe) for word, recipe in recipes.items()}
    check_names(axes)
    names = [text.partition("=")[0].strip() for text in request.overrides]
    fixed = {setting_path(name, recipe): name for name in names for recipe in recipes.values()}
    for axis in axes:
        for path in (setting_path(axis.name, recipe) for recipe in recipes.values()):
            if path in fixed:
                raise CompressError(f"--try {axis.name}: --set {fixed[path]} gives it too; leave one of the two out")
        having = [word for word, names in parts.items() if axis.part in names]
        if not having:
            part = "student" if axis.name == STUDENT else f"stage `{axis.part}`"
            raise CompressError(f"--try {axis.name}: none of {', '.join(recipes)} has a {part}")
        for value in axis.values:
            if axis.name == STUDENT:
                resolve_student(str(value))
            else:
                _check_value(axis, value, having)
    return parts


def _check_value(axis: Axis, value: object, recipes: Sequence[str]) -> None:
    """Check the value as an override of each of `recipes`, which are valid without it. CompressError names --try."""
    try:
        for word in recipes:
            load_recipe(word, overrides_of({axis.name: value}))
    except CompressError as error:
        raise CompressError(_naming_try(error, [axis.name])) from None


def _naming_try(error: CompressError, names: Iterable[str]) -> str:
    """Return the error's message, with --try instead of --set for the settings that are varied under these names."""
    text = str(error)
    for name in names:
        text = re.sub(rf"--set (?={re.escape(name)}\b)", "--try ", text)
    return text


def _plannable(request: Request, axes: Sequence[Axis]) -> dict[str, Plan]:
    """Map each recipe, with each student if these vary, to its plan, leaving out combinations that do not fit. If none of a
    recipe fits, raises the `CompressError` of the last one: so does a task, a teacher or a file that is missing."""
    students = next((axis.values for axis in axes if axis.name == STUDENT), ())
    plans: dict[str, Plan] = {}
    for word in map(str, request.recipes):
        own = students if load_recipe(word).student is not None else ()
        points = [{RECIPE: word, STUDENT: value} for value in own] or [{RECIPE: word}]
        recipe_plans: dict[str, Plan] = {}
        for point in points:
            try:
                recipe_plans[" ".join(map(str, point.values()))] = plan_all(_request(request, point))[0]
            except CompressError:
                if point is points[-1] and not recipe_plans:
                    raise
        plans |= recipe_plans
    return plans


def _request(request: Request, point: Point) -> Request:
    word = str(point[RECIPE])
    own = {STUDENT: str(point[STUDENT])} if STUDENT in point else {}
    overrides = (*overrides_for(request, word), *overrides_of(point))
    readers = [other for other in map(str, request.recipes) if _reads_text(other)]
    corpus = request.corpus if word in readers or not readers else ()  # if none reads it, planning reports that
    return replace(request, recipes=(word,), overrides=overrides, corpus=corpus, bench=None, **own)


def _reads_text(recipe: str) -> bool:
    return any(STAGES[stage.kind].reads_text for stage in load_recipe(recipe).stages)


def command_of(request: Request, point: Point, limits: Limits) -> str:
    """Return the `compress run` command of a point, which reuses what the search has in its folder."""
    point_request = replace(_request(request, point), bench=_bench(limits))
    return f"{command_line(point_request, plan_all(point_request)[0])} --out {shlex.quote(display_path(str(request.root)))}"


def _bench(limits: Limits) -> BenchSettings | None:
    """Return the benchmark settings for the front; None if latency does not matter."""
    return BenchSettings() if limits.max_latency_ms is not None else None


def _outcome(
    number: int, point: Point, request: Request, limits: Limits, latencies: Latencies, listener: Listener
) -> Outcome:
    point_request = _request(request, point)
    try:
        (plan,) = plan_all(point_request)
    except CompressError as error:  # values that do not fit each other, such as a student and this teacher
        return Outcome(refused=_naming_try(error, point))
    sizes = known_sizes(plan)
    if why := _too_large(plan, sizes, limits):
        return Outcome(refused=why)
    if why := _too_slow(plan, sizes, limits, latencies):
        return Outcome(refused=why)
    try:
        artifact = build_stage(point_request, plan.models[-1], listener)
    except CheckFailed as error:  # such as a training that learnt nothing; the others go on
        return Outcome(refused=str(error))
    cache = Store.of_runs(request.root)
    measured = _measure_trial(number, plan, sizes, artifact, cache, limits, latencies)
    cost = measured.size_mb if measured.latency_ms is None else measured.latency_ms
    info: dict[str, Any] = {name: value for name, value in asdict(measured).items() if name != "number"}
    return Outcome((-measured.score, cost), limits.violations(measured), info=info)


def _too_large(plan: Plan, sizes: KnownSizes, limits: Limits) -> str | None:
    """Return why the last model's file cannot meet the limit, by the fewest parameters that it could have; None if it can."""
    if limits.max_size_mb is None:
        return None
    least = _KEPT * least_mb(plan, sizes.least)
    if least <= limits.max_size_mb:
        return None
    return f"--max-size-mb: expected at most {limits.max_size_mb:g} MB, found at least {least:.4g} MB by its parameters"


def _too_slow(plan: Plan, sizes: KnownSizes, limits: Limits, latencies: Latencies) -> str | None:
    """Return why no training could meet the limit, by the shape of the model, or the narrowest that it could have; None if
    one could."""
    shape = None if limits.max_latency_ms is None else shape_of(plan, sizes.least)
    if shape is None or limits.max_latency_ms is None:
        return None
    latency = latencies.get(shape, lambda: untrained_latency(plan, sizes.least))
    least = latency if sizes.exact else _QUICKEST * latency
    if least <= limits.max_latency_ms:
        return None
    by = (
        f"{latency:.4g} ms by its shape"
        if sizes.exact
        else f"at least {least:.4g} ms by the narrowest shape it can have"
    )
    return f"--max-latency-ms: expected at most {limits.max_latency_ms:g} ms, found {by}, untrained"


def _measure_trial(
    number: int,
    plan: Plan,
    sizes: KnownSizes,
    artifact: Artifact,
    cache: Store,
    limits: Limits,
    latencies: Latencies,
) -> Measured:
    from ..evaluate import predict_onnx

    name, _, precision = plan.models[-1].rpartition("-")
    checkpoint, onnx = cache.path(plan.keys[plan.checkpoint(name)]), artifact.path / MODEL_FILES[precision]
    data = plan.task.data
    encoded = plan.task.encoded("tuning", load_tokenizer(checkpoint), data.spec.max_length)
    config = read_config(checkpoint)
    logits = predict_onnx(onnx, encoded, pad_id(config), threads=1)
    points = headline(score(data.spec, data.labels, logits, gold_of(data.spec, data.tuning)))
    size = onnx.stat().st_size / 1e6
    if limits.max_latency_ms is None:
        return Measured(number, points, size)
    if sizes.exact and (shape := shape_of(plan, sizes.least)):
        return Measured(number, points, size, latencies.get(shape, lambda: untrained_latency(plan, sizes.least)))
    length = length_of(plan, config)
    described = {"model": artifact.key, "length": length}
    return Measured(number, points, size, latencies.get(described, lambda: cpu_milliseconds(onnx, length)))
