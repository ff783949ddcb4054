"""Run recipes on tasks: plan, check, build what is missing, measure, write results."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from ..catalog import load_recipe
from ..errors import CompressError
from ..machine import fast_bf16, usable_cores
from ..results import Result, read_result
from ..spec.recipe import Recipe
from ..store import Artifact, Store
from ..tasks import resolve_task
from .assemble import Made, build_result, described, write_run
from .context import Context, Listener, TaskSource, TextSource
from .draft import Node
from .measure import BenchSettings, benchmark, models_of, predictions
from .plan import Plan, make_plan
from .planning import READS_TEXT
from .preflight import preflight
from .stages import STAGES
from .teachers import TeacherSource, resolve_teacher


@dataclass(frozen=True)
class Request:
    """What to run: every recipe on every task with every seed.

    `teacher` and `student` override the recipe's; `refit` fine-tunes a teacher that already has a
    head; `data_dir` holds GLUE's folders or a saved data set; `corpus` names plain text; `overrides` are
    `path=value` for every recipe that is named (one given as an object is run as it is).
    `base_seed` is that of the teacher, the general stage and the augmentation, which the seeds then
    share (default: every seed has its own). Without `bench` no latency is measured. `command` is what
    results say they were made by; default: the `compress run` that makes each.
    """

    recipes: tuple[str | Recipe, ...]
    tasks: tuple[str, ...]
    teacher: str | None = None
    student: str | None = None
    seeds: tuple[int, ...] = (0,)
    base_seed: int | None = None
    data_dir: Path | None = None
    corpus: tuple[str, ...] = ()
    root: Path = Path("runs")
    precision: str | None = None
    refit: bool = False
    overrides: tuple[str, ...] = ()
    threads: int | None = None
    bench: BenchSettings | None = field(default_factory=BenchSettings)
    checkpoint_seconds: float = 60.0
    command: str | None = None


def plan_all(request: Request) -> list[Plan]:
    """The plans of a request, every mistake that can be found without computing found. Writes nothing."""
    if request.data_dir is not None and not request.data_dir.is_dir():
        raise CompressError(f"{request.data_dir}: no such folder; --data-dir is the folder that holds the task's data")
    tasks: list[TaskSource] = []
    for name in request.tasks:
        spec, folder = resolve_task(name)
        tasks.append(TaskSource(spec, folder, request.data_dir))
        if len({task.fingerprint for task in tasks if task.spec.name == spec.name}) > 1:
            raise CompressError(f"two different tasks are named {spec.name}; give one of them another name")
    recipes = _recipes(request)
    corpus = _corpus(request, recipes)
    teachers: dict[str, TeacherSource] = {}
    plans: dict[str, Plan] = {}
    for recipe in recipes:
        name = request.teacher or recipe.teacher
        if name not in teachers:
            teachers[name] = resolve_teacher(name)
        teacher = teachers[name]
        precision = resolve_precision(request.precision or recipe.precision)
        for task in tasks:
            for seed in request.seeds:
                plan = make_plan(
                    recipe,
                    task,
                    teacher,
                    student=request.student,
                    corpus=corpus,
                    seed=seed,
                    base_seed=request.base_seed,
                    precision=precision,
                    refit=request.refit,
                )
                plans[plan.name] = plan
    return list(plans.values())


def _corpus(request: Request, recipes: list[Recipe]) -> TextSource | None:
    if not request.corpus:
        return None
    if not any(stage.kind in READS_TEXT for recipe in recipes for stage in recipe.stages):
        names = ", ".join(recipe.name for recipe in recipes)
        raise CompressError(f"--corpus names plain text, and no stage of {names} reads any; leave it out")
    corpus = TextSource(request.corpus)
    _ = corpus.sources  # missing, unreadable and empty files are found now
    return corpus


def _recipes(request: Request) -> list[Recipe]:
    """Every recipe with the overrides that concern it."""
    return [
        recipe if isinstance(recipe, Recipe) else load_recipe(recipe, _overrides(request, recipe))
        for recipe in request.recipes
    ]


def _overrides(request: Request, name: str) -> list[str]:
    """An override of a stage that only some of the recipes have is for those."""
    stages = {
        word: {stage.id for stage in load_recipe(word).stages} for word in request.recipes if isinstance(word, str)
    }
    elsewhere = set().union(*stages.values()) - stages[name]
    return [text for text in request.overrides if re.split(r"[.=\[]", text.strip())[0] not in elsewhere]


def resolve_precision(precision: str) -> str:
    """`auto` is bf16 where the CPU multiplies bf16 (AVX512-BF16, AMX), else fp32. On a GPU, say bf16."""
    return ("bf16" if fast_bf16() else "fp32") if precision == "auto" else precision


def run_all(request: Request, listener: Listener | None = None) -> list[Result]:
    """Every run of the request, finished; runs that are finished already are read.

    Raises `CompressError` for wrong input before anything is computed, `CheckFailed` for an
    outcome that fails a check, `Interrupted` after a signal; finished stages are kept.
    """
    listener = listener or Listener()
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise CompressError(
            "started by torchrun in several processes: a run uses one process; start it without torchrun"
        )
    plans = plan_all(request)
    preflight(plans, request.root)
    cache = Store(request.root / ".store", on_notice=listener.notice)
    contexts = [_context(plan, request, listener) for plan in plans]
    for plan, context in zip(plans, contexts, strict=True):
        if plan.nodes[0].kind == "adopt":  # is every teacher fit for every task? Known before any training
            _build(plan, plan.nodes[:1], context, cache)
    return [_run(plan, request, context, cache) for plan, context in zip(plans, contexts, strict=True)]


def _context(plan: Plan, request: Request, listener: Listener) -> Context:
    threads = request.threads or usable_cores()
    return Context(plan.task, plan.precision, threads, listener, request.checkpoint_seconds, list(plan.notes))


def _run(plan: Plan, request: Request, context: Context, cache: Store) -> Result:
    for note in plan.notes:
        context.listener.notice(note)
    artifacts, cached = _build(plan, plan.nodes, context, cache)
    models = models_of(plan, artifacts)
    scored = {model.label: predictions(model, context, cache) for model in models}
    measured = benchmark(models, context, request.bench, cache) if request.bench else None
    measurements = [described(plan), *(key for key, _ in scored.values()), *([measured[0]] if measured else [])]
    folder = request.root / plan.name
    with FileLock(cache.root / ".locks" / plan.name):  # two processes that end together write one after the other
        finished = _finished(folder, measurements)
        if finished is not None:
            return finished
        logits = {label: arrays for label, (_, arrays) in scored.items()}
        made = Made(artifacts, cached, models, logits, measured[1] if measured else {}, measurements)
        result = build_result(plan, context, made, request.bench, request.command or command_line(request, plan))
        write_run(folder, result, plan, context, made, cache.root)
    return result


def _finished(folder: Path, measurements: list[str]) -> Result | None:
    """The result that is there, when it is of the very same measurements."""
    if not (folder / "result.json").exists():
        return None
    try:
        result = read_result(folder)
    except CompressError:
        return None
    return result if result.settings.get("measurements") == measurements else None


def _build(
    plan: Plan, nodes: tuple[Node, ...], context: Context, cache: Store
) -> tuple[dict[str, Artifact], dict[str, bool]]:
    artifacts: dict[str, Artifact] = {}
    cached: dict[str, bool] = {}
    for node in nodes:
        inputs = {role: artifacts[name] for role, name in node.inputs.items()}
        found = cache.find(node.key)
        context.listener.stage(node.label, found is not None)
        cached[node.id] = found is not None

        def make(out: Path, work: Path, node=node, inputs=inputs) -> dict:
            _prepare(context)
            return STAGES[node.kind](plan, node, inputs, context, out, work)

        describe = {"kind": node.kind, "label": f"{node.label} on {plan.task.spec.name}"}
        artifacts[node.id] = found or cache.build(node.key, make, describe=describe)
    return artifacts, cached


def _prepare(context: Context) -> None:
    import torch

    torch.set_num_threads(context.threads)


def command_line(request: Request, plan: Plan) -> str:
    """The command that makes this one run again, whatever else was asked for beside it."""
    words = ["compress", "run", _recipe_word(request, plan), "--task", _task_word(request, plan)]
    for flag, value in (
        ("--teacher", request.teacher),
        ("--student", request.student),
        ("--data-dir", request.data_dir),
    ):
        words += [flag, str(value)] if value is not None else []
    for word in request.corpus:
        words += ["--corpus", word]
    words += ["--seed", str(plan.seed)] if plan.seed else []
    words += ["--base-seed", str(request.base_seed)] if request.base_seed is not None else []
    words += ["--precision", request.precision] if request.precision else []
    usual = BenchSettings()
    timed = request.bench or usual
    for flag, value, default in (
        ("--bench-runs", timed.runs, usual.runs),
        ("--bench-threads", timed.threads, usual.threads),
    ):
        words += [flag, str(value)] if value != default else []
    words += ["--no-bench"] if request.bench is None else []
    words += ["--refit"] if request.refit else []
    word = _recipe_word(request, plan)
    for override in _overrides(request, word) if word in request.recipes else ():
        words += ["--set", override]
    return shlex.join(words)


def _recipe_word(request: Request, plan: Plan) -> str:
    words = [word for word in request.recipes if isinstance(word, str)]
    return next((word for word in words if Path(word).stem == plan.recipe.name), plan.recipe.name)


def _task_word(request: Request, plan: Plan) -> str:
    words = {word: resolve_task(word)[0].name for word in request.tasks}
    return next((word for word, name in words.items() if name == plan.task.spec.name), plan.task.spec.name)
