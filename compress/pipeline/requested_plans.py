"""Plans of all that a request names: each recipe on each task with each seed."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ..errors import CompressError
from ..machine import training_precision
from ..processes import ranks
from ..spec.recipe import Recipe
from ..spec.stages import Finetune
from ..tasks import check_data_dir
from .plan import Plan
from .plan.sources import TaskSource, TextSource
from .plan.teachers import TeacherSource, resolve_teacher
from .planner import make_plan, note_equal_seeds
from .request import Request, check_numbers, load_recipe, overrides_for, tasks_of, teacher_words
from .stages.finetune import FINETUNE
from .stages.registry import STAGES


def plan_all(request: Request) -> list[Plan]:
    """Plan a request, raising every error that can be found without computing. Writes nothing."""
    if request.fsdp and ranks.count() == 1:
        raise CompressError(
            "--fsdp splits a model among processes, and there is only one; start two or more with torchrun"
        )
    if request.jobs > 1 and ranks.count() > 1:
        raise CompressError("--jobs: under torchrun all processes train one model; leave it out")
    check_numbers(request)
    _check_overrides(request)
    tasks = _tasks(request)
    recipes = _recipes(request)
    corpus = _corpus(request, recipes)
    known: dict[str, TeacherSource] = {}
    plans: dict[str, Plan] = {}
    for word, recipe in zip(request.recipes, recipes, strict=True):
        for name in (names := teacher_words(request, recipe)):
            known[name] = known.get(name) or resolve_teacher(name)
        teacher, *others = (known[name] for name in names)
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
                    others=others,
                )
                notes = (*plan.notes, *_without_effect(plan, request))
                plans[plan.name] = replace(plan, notes=notes, requested_as=word if isinstance(word, str) else None)
    return note_equal_seeds(list(plans.values()))


def _check_overrides(request: Request) -> None:
    """Raise `CompressError` for an override of what an option gives, which would have no effect, or of a field of a teacher."""
    for text in request.overrides:
        path = text.partition("=")[0].strip()
        if field := re.match(r"teacher\.([a-z]\w*)", path):
            trained = field[1] in Finetune.model_fields
            remedy = f"; its training is the stage `finetune`: set finetune.{field[1]}" if trained else ""
            raise CompressError(
                f"--set {path}: a teacher is a card, a folder or a hub repository, without fields here{remedy}"
            )
        name = re.split(r"[.\[]", path)[0]
        if name in ("teacher", "student", "precision") and getattr(request, name):
            raise CompressError(f"--set {text}: --{name} gives it too; leave one of the two out")


def _tasks(request: Request) -> list[TaskSource]:
    """Return the data of every task."""
    tasks: list[TaskSource] = []
    resolved = tasks_of(request)
    check_data_dir(request.data_dir, [spec for spec, _ in resolved])
    if request.tuning is not None and len({spec.name for spec, _ in resolved}) > 1:
        raise CompressError("--tuning: one file is the tuning split of one task, found several; run them one by one")
    for spec, folder in resolved:
        tasks.append(TaskSource(spec, folder, request.data_dir, request.tuning))
        if len({task.fingerprint for task in tasks if task.spec.name == spec.name}) > 1:
            raise CompressError(f"two different tasks are named {spec.name}; give one of them another name")
    return tasks


def _without_effect(plan: Plan, request: Request) -> list[str]:
    """Return a line for each override of a fine-tuning that does not take place."""
    stages = {stage.id for stage in plan.recipe.stages if stage.kind == "finetune"}
    if any(node.kind is FINETUNE for node in plan.nodes):
        return []
    names = " and ".join(teacher.card.name for teacher in plan.teachers.values())
    who, them = (f"teachers {names} are", "them") if plan.others else (f"teacher {names} is", "it")
    why = f"fine-tuned already; give --refit to fine-tune {them} again"
    why = why if plan.learns_labels else "used as it is: no teacher is trained on the task's labels"
    return [
        f"--set {text} has no effect: {who} {why}"
        for text in request.overrides
        if re.split(r"[.=\[]", text.strip())[0] in stages
    ]


def _corpus(request: Request, recipes: list[Recipe]) -> TextSource | None:
    if not request.corpus:
        return None
    if not any(STAGES[stage.kind].reads_text for recipe in recipes for stage in recipe.stages):
        if request.own is not None and [*map(Path, request.corpus)] == [request.own.train]:
            return None  # the task's train split
        names = ", ".join(recipe.name for recipe in recipes)
        raise CompressError(f"--corpus names plain text, and no stage of {names} reads any; leave it out")
    corpus = TextSource(request.corpus)
    _ = corpus.sources  # raises now for missing, unreadable and empty files
    return corpus


def _recipes(request: Request) -> list[Recipe]:
    """Return every recipe with the overrides that apply to it."""
    return [
        recipe if isinstance(recipe, Recipe) else load_recipe(recipe, overrides_for(request, recipe))
        for recipe in request.recipes
    ]


def resolve_precision(precision: str) -> str:
    """Return `fp32` or `bf16`; for `auto` the one in which the training device is fast. Raises `CompressError` for any other word."""
    if precision not in ("auto", "fp32", "bf16"):
        raise CompressError(f"precision: expected fp32, bf16 or auto; found {precision!r}")
    return training_precision() if precision == "auto" else precision
