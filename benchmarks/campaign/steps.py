"""The steps of a campaign: how long to pre-train, and which recipe on which task."""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path
from typing import Any

from compress.catalog import load_recipe
from compress.pipeline import Request, plan_all
from compress.pipeline.plan.sources import TextSource
from compress.pipeline.request import overrides_for
from compress.pipeline.stages.registry import STAGES

from .state import Campaign

RECIPES = (
    "int8", "distilbert", "distilbert-int8-qat", "minilm", "tinybert-small", "albert", "albert-int8",
    "tinybert-int8-auto", "distilbert-general", "tinybert-general", "tinybert",
)  # fmt: skip
PRETRAIN = "bert-pretrain"


def overrides(arguments: argparse.Namespace) -> dict[str, list[str]]:
    """Return each recipe's overrides, distributed as `compress run` does. Raises `CompressError` if one fits no recipe."""
    return _shared_out((PRETRAIN, *(arguments.recipe or RECIPES)), tuple(arguments.set))


@cache
def _shared_out(names: tuple[str, ...], texts: tuple[str, ...]) -> dict[str, list[str]]:
    request = Request(recipes=names, tasks=(), overrides=texts)
    recipe_overrides = {name: overrides_for(request, name) for name in names}
    for name, own in recipe_overrides.items():
        load_recipe(name, own)
    return recipe_overrides


def check(arguments: argparse.Namespace) -> None:
    """Plan the first step on every task. Raises `CompressError` for input that no step could use."""
    first = RECIPES[0] if arguments.no_pretrain else PRETRAIN
    plan_all(planned_request(arguments, first, *arguments.task))
    _ = TextSource(tuple(arguments.corpus)).sources


def planned_request(arguments: argparse.Namespace, recipe: str, *tasks: str) -> Request:
    """Return the request that a step of the campaign will make, but with the teacher before its pre-training."""
    return Request(
        recipes=(recipe,),
        tasks=tasks,
        teacher=arguments.teacher,
        corpus=tuple(_corpus(arguments, recipe)),
        precision=arguments.precision,
        data_dir=arguments.data_dir,
        overrides=tuple(overrides(arguments).get(recipe, ())),
        root=arguments.out / "runs",
    )


def wanted_recipes(arguments: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Return (recipe, task, task name), each recipe over all tasks before the next, so that a short campaign covers all tasks."""
    stems = [Path(task).stem for task in arguments.task]
    names = arguments.task if len(set(stems)) < len(stems) else stems
    return [
        (recipe, task, name)
        for recipe in arguments.recipe or RECIPES
        for task, name in zip(arguments.task, names, strict=True)
    ]


def _corpus(arguments: argparse.Namespace, recipe: str) -> list[str]:
    reads = any(STAGES[stage.kind].reads_text for stage in load_recipe(recipe).stages)
    return arguments.corpus if reads else []


def pretrained_teacher(campaign: Campaign) -> str | None:
    """Return the teacher for the recipes, after pre-training; None if pre-training did not finish."""
    arguments = campaign.arguments
    if arguments.no_pretrain:
        return arguments.teacher
    planned = _steps_that_fit(campaign)
    if planned is None:
        return None
    what = _pretraining(arguments, planned["steps"])
    done = campaign.step("pretrain", "pretrain", what, campaign.left)
    return None if done is None else what["checkpoint"]


def done_before(arguments: argparse.Namespace) -> set[str]:
    """Return the names of the steps, `pretrain` and `RECIPE TASK`, that a start with these arguments finds done."""
    path = arguments.out / "campaign.json"
    if not path.exists():
        return set()
    document = json.loads(path.read_text(encoding="utf-8"))
    done = {name: step["what"] for name, step in document["steps"].items() if step["state"] == "done"}
    wanted: dict[str, dict[str, Any]] = {}
    teacher, pretraining = arguments.teacher, {}
    if not arguments.no_pretrain:
        planned = document.get("pretrain")
        if planned is None or planned["probe"] != _probe(arguments):
            return set()
        wanted["pretrain"] = what = _pretraining(arguments, planned["steps"])
        teacher, pretraining = what["checkpoint"], {"pretrained_by": what}
    for recipe, task, name in wanted_recipes(arguments):
        wanted[f"{recipe} {name}"] = _what(arguments, recipe, task, teacher) | pretraining
    return {name for name, what in wanted.items() if done.get(name) == what}


def _probe(arguments: argparse.Namespace) -> dict[str, Any]:
    return _what(
        arguments,
        PRETRAIN,
        arguments.task[0],
        arguments.teacher,
        extra=(f"pretrain.max_steps={arguments.probe_steps}",),
    )


def _pretraining(arguments: argparse.Namespace, steps: int) -> dict[str, Any]:
    what = _what(arguments, PRETRAIN, arguments.task[0], arguments.teacher, extra=(f"pretrain.max_steps={steps}",))
    return what | {"checkpoint": str(arguments.out / f"{Path(arguments.teacher).stem}-pretrained")}


def _steps_that_fit(campaign: Campaign) -> dict[str, Any] | None:
    """Plan the pre-training steps that fit into its share of the remaining time, at most the recipe's passes over the text. Decided once
    per probe: later starts keep the decision, whatever their minutes."""
    arguments = campaign.arguments
    what = _probe(arguments)
    planned = campaign.document.get("pretrain")
    if planned is not None and planned["probe"] == what:
        return planned
    probe = campaign.step("probe", "pretrain", what | {"checkpoint": None}, campaign.left)
    if probe is None:
        return None
    recipe = load_recipe(PRETRAIN, overrides(arguments)[PRETRAIN])
    (spec,) = (stage.spec for stage in recipe.stages if stage.kind == "pretrain")
    per_step = spec.batch_size * probe["sequence_length"]
    once = -(-probe["sequences"] // spec.batch_size)
    fitting = int(campaign.left * arguments.share * probe["tokens_per_second"] / per_step)
    steps = max(1, min(fitting, round(spec.epochs * once)))
    campaign.document["pretrain"] = {"steps": steps, "batch_size": spec.batch_size, "probe": what}
    campaign.save()
    return campaign.document["pretrain"]


def run_recipes(campaign: Campaign, teacher: str) -> None:
    """Run each recipe in at most half of the remaining time; the last one may take all of it."""
    arguments = campaign.arguments
    # Run the recipes again if the teacher was pre-trained with other settings or on other text.
    pretraining = {} if arguments.no_pretrain else {"pretrained_by": campaign.steps["pretrain"]["what"]}
    wanted = wanted_recipes(arguments)
    for place, (recipe, task, name) in enumerate(wanted):
        last = place == len(wanted) - 1
        limit = campaign.left if last else campaign.left / 2
        campaign.step(f"{recipe} {name}", "recipe", _what(arguments, recipe, task, teacher) | pretraining, limit)


def _what(
    arguments: argparse.Namespace, recipe: str, task: str, teacher: str, *, extra: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "recipe": recipe,
        "task": task,
        "teacher": teacher,
        "corpus": _corpus(arguments, recipe),
        "data_dir": None if arguments.data_dir is None else str(arguments.data_dir),
        "root": str(arguments.out / "runs"),
        "precision": arguments.precision,
        "overrides": [*overrides(arguments)[recipe], *extra],
    }
