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


def overrides(asked: argparse.Namespace) -> dict[str, list[str]]:
    """Return each recipe's overrides, distributed as `compress run` does. Raises `CompressError` if one fits no recipe."""
    return _shared_out((PRETRAIN, *(asked.recipe or RECIPES)), tuple(asked.set))


@cache
def _shared_out(names: tuple[str, ...], texts: tuple[str, ...]) -> dict[str, list[str]]:
    request = Request(recipes=names, tasks=(), overrides=texts)
    found = {name: overrides_for(request, name) for name in names}
    for name, own in found.items():
        load_recipe(name, own)
    return found


def check(asked: argparse.Namespace) -> None:
    """Plan the first step on every task. Raises `CompressError` for input that no step could use."""
    first = RECIPES[0] if asked.no_pretrain else PRETRAIN
    plan_all(planned_request(asked, first, *asked.task))
    _ = TextSource(tuple(asked.corpus)).sources


def planned_request(asked: argparse.Namespace, recipe: str, *tasks: str) -> Request:
    """Return the request that a step of the campaign will make, but with the teacher before its pre-training."""
    return Request(
        recipes=(recipe,),
        tasks=tasks,
        teacher=asked.teacher,
        corpus=tuple(_corpus(asked, recipe)),
        precision=asked.precision,
        data_dir=asked.data_dir,
        overrides=tuple(overrides(asked).get(recipe, ())),
        root=asked.out / "runs",
    )


def wanted_recipes(asked: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Return (recipe, task, task name), each recipe over all tasks before the next, so that a short campaign covers all tasks."""
    stems = [Path(task).stem for task in asked.task]
    names = asked.task if len(set(stems)) < len(stems) else stems
    return [
        (recipe, task, name) for recipe in asked.recipe or RECIPES for task, name in zip(asked.task, names, strict=True)
    ]


def _corpus(asked: argparse.Namespace, recipe: str) -> list[str]:
    reads = any(STAGES[stage.kind].reads_text for stage in load_recipe(recipe).stages)
    return asked.corpus if reads else []


def pretrained_teacher(campaign: Campaign) -> str | None:
    """Return the teacher for the recipes, after pre-training; None if pre-training did not finish."""
    asked = campaign.arguments
    if asked.no_pretrain:
        return asked.teacher
    planned = _steps_that_fit(campaign)
    if planned is None:
        return None
    what = _pretraining(asked, planned["steps"])
    done = campaign.step("pretrain", "pretrain", what, campaign.left)
    return None if done is None else what["checkpoint"]


def done_before(asked: argparse.Namespace) -> set[str]:
    """Return the names of the steps, `pretrain` and `RECIPE TASK`, that a start with these arguments finds done."""
    path = asked.out / "campaign.json"
    if not path.exists():
        return set()
    document = json.loads(path.read_text(encoding="utf-8"))
    done = {name: step["what"] for name, step in document["steps"].items() if step["state"] == "done"}
    wanted: dict[str, dict[str, Any]] = {}
    teacher, made = asked.teacher, {}
    if not asked.no_pretrain:
        planned = document.get("pretrain")
        if planned is None or planned["probe"] != _probe(asked):
            return set()
        wanted["pretrain"] = what = _pretraining(asked, planned["steps"])
        teacher, made = what["checkpoint"], {"pretrained_by": what}
    for recipe, task, name in wanted_recipes(asked):
        wanted[f"{recipe} {name}"] = _what(asked, recipe, task, teacher) | made
    return {name for name, what in wanted.items() if done.get(name) == what}


def _probe(asked: argparse.Namespace) -> dict[str, Any]:
    return _what(asked, PRETRAIN, asked.task[0], asked.teacher, extra=(f"pretrain.max_steps={asked.probe_steps}",))


def _pretraining(asked: argparse.Namespace, steps: int) -> dict[str, Any]:
    what = _what(asked, PRETRAIN, asked.task[0], asked.teacher, extra=(f"pretrain.max_steps={steps}",))
    return what | {"checkpoint": str(asked.out / f"{Path(asked.teacher).stem}-pretrained")}


def _steps_that_fit(campaign: Campaign) -> dict[str, Any] | None:
    """Plan the pre-training steps that fit into its share of the remaining time, at most the recipe's passes over the text. Decided once
    per probe: later starts keep the decision, whatever their minutes."""
    asked = campaign.arguments
    what = _probe(asked)
    planned = campaign.document.get("pretrain")
    if planned is not None and planned["probe"] == what:
        return planned
    probe = campaign.step("probe", "pretrain", what | {"checkpoint": None}, campaign.left)
    if probe is None:
        return None
    recipe = load_recipe(PRETRAIN, overrides(asked)[PRETRAIN])
    (spec,) = (stage.spec for stage in recipe.stages if stage.kind == "pretrain")
    per_step = spec.batch_size * probe["sequence_length"]
    once = -(-probe["sequences"] // spec.batch_size)
    fitting = int(campaign.left * asked.share * probe["tokens_per_second"] / per_step)
    steps = max(1, min(fitting, round(spec.epochs * once)))
    campaign.document["pretrain"] = {"steps": steps, "batch_size": spec.batch_size, "probe": what}
    campaign.save()
    return campaign.document["pretrain"]


def run_recipes(campaign: Campaign, teacher: str) -> None:
    """Run each recipe in at most half of the remaining time; the last one may take all of it."""
    asked = campaign.arguments
    # Run the recipes again if the teacher was pre-trained with other settings or on other text.
    made = {} if asked.no_pretrain else {"pretrained_by": campaign.steps["pretrain"]["what"]}
    wanted = wanted_recipes(asked)
    for place, (recipe, task, name) in enumerate(wanted):
        last = place == len(wanted) - 1
        limit = campaign.left if last else campaign.left / 2
        campaign.step(f"{recipe} {name}", "recipe", _what(asked, recipe, task, teacher) | made, limit)


def _what(
    asked: argparse.Namespace, recipe: str, task: str, teacher: str, *, extra: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "recipe": recipe,
        "task": task,
        "teacher": teacher,
        "corpus": _corpus(asked, recipe),
        "data_dir": None if asked.data_dir is None else str(asked.data_dir),
        "root": str(asked.out / "runs"),
        "precision": asked.precision,
        "overrides": [*overrides(asked)[recipe], *extra],
    }
