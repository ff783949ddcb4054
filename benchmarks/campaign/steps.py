"""The steps of a campaign: how long to pre-train, and which recipe on which task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compress.catalog import load_recipe
from compress.pipeline.planning_parts import READS_TEXT
from compress.spec.recipe import Recipe

from .state import Campaign

RECIPES = (
    "int8", "distilbert", "distilbert-int8-qat", "minilm", "tinybert-small", "albert", "albert-int8",
    "tinybert-int8-auto", "tinybert",
)  # fmt: skip
PRETRAIN = "bert-pretrain"


def pretrained_teacher(campaign: Campaign) -> str | None:
    """The teacher for the recipes, after its pre-training; None where that did not come to its end."""
    asked = campaign.arguments
    if asked.no_pretrain:
        return asked.teacher
    planned = campaign.document.get("pretrain") or _steps_that_fit(campaign)
    if planned is None:
        return None
    folder = campaign.out / f"{Path(asked.teacher).stem}-pretrained"
    what = _what(campaign, PRETRAIN, asked.task[0], asked.teacher, extra=(f"pretrain.max_steps={planned['steps']}",))
    done = campaign.step("pretrain", "pretrain", what | {"checkpoint": str(folder)}, campaign.left)
    return None if done is None else str(folder)


def _steps_that_fit(campaign: Campaign) -> dict[str, int] | None:
    """Into the share of the time that is left, never more than the recipe's passes over the text. Decided once."""
    asked = campaign.arguments
    what = _what(campaign, PRETRAIN, asked.task[0], asked.teacher, extra=(f"pretrain.max_steps={asked.probe_steps}",))
    probe = campaign.step("probe", "pretrain", what | {"checkpoint": None}, campaign.left)
    if probe is None:
        return None
    (spec,) = (stage.spec for stage in _recipe(campaign, PRETRAIN).stages if stage.kind == "pretrain")
    per_step = spec.batch_size * probe["sequence_length"]
    once = -(-probe["sequences"] // spec.batch_size)
    fitting = int(campaign.left * asked.share * probe["tokens_per_second"] / per_step)
    steps = max(1, min(fitting, round(spec.epochs * once)))
    campaign.document["pretrain"] = {"steps": steps, "batch_size": spec.batch_size}
    campaign.save()
    return campaign.document["pretrain"]


def run_recipes(campaign: Campaign, teacher: str) -> None:
    """Recipe by recipe over all tasks, so that little time gives all tasks something."""
    asked = campaign.arguments
    wanted = [(recipe, task) for recipe in asked.recipe or RECIPES for task in asked.task]
    for place, (recipe, task) in enumerate(wanted):
        last = place == len(wanted) - 1
        limit = campaign.left if last else campaign.left / 2
        campaign.step(f"{recipe} {Path(task).stem}", "recipe", _what(campaign, recipe, task, teacher), limit)


def _what(campaign: Campaign, recipe: str, task: str, teacher: str, *, extra: tuple[str, ...] = ()) -> dict[str, Any]:
    asked = campaign.arguments
    stages = {stage.id: stage for stage in load_recipe(recipe).stages}
    reads = any(stage.kind in READS_TEXT for stage in stages.values())
    return {
        "recipe": recipe,
        "task": task,
        "teacher": teacher,
        "corpus": asked.corpus if reads else [],
        "data_dir": None if asked.data_dir is None else str(asked.data_dir),
        "root": str(campaign.out / "runs"),
        "precision": asked.precision or ("bf16" if campaign.document["machine"]["gpu"] else None),
        "overrides": [*_for_recipe(asked.set, set(stages)), *extra],
    }


def idle_overrides(overrides: list[str], recipes: Sequence[str]) -> list[str]:
    """Those that no stage of any recipe takes."""
    stages = {stage.id for name in recipes for stage in load_recipe(name).stages}
    return [text for text in overrides if _stage(text) not in stages]


def _for_recipe(overrides: list[str], stages: set[str]) -> list[str]:
    return [text for text in overrides if _stage(text) in stages]


def _stage(override: str) -> str:
    return re.split(r"[.=\[]", override.strip())[0]


def _recipe(campaign: Campaign, name: str) -> Recipe:
    stages = {stage.id for stage in load_recipe(name).stages}
    return load_recipe(name, _for_recipe(campaign.arguments.set, stages))
