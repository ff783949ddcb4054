"""Every recipe of the catalogue, planned."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_runs import TASK, TEACHER

from compress.catalog import list_cards, names
from compress.pipeline import Request, plan_all
from compress.spec.recipe import Recipe


def test_every_recipe_names_students_and_teachers_that_exist() -> None:
    teachers, students = names("teachers"), names("students")
    for recipe in list_cards("recipes", Recipe).values():
        assert recipe.teacher in teachers
        chosen = recipe.student if isinstance(recipe.student, dict) else {0: recipe.student} if recipe.student else {}
        assert set(chosen.values()) <= set(students)


@pytest.mark.parametrize("recipe", names("recipes"))
def test_every_recipe_is_planned(tmp_path: Path, recipe: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all its stages except those that need plain text."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(TEACHER, encoding="utf-8")
    Path("task.yaml").write_text(TASK, encoding="utf-8")
    text = recipe.endswith("-pretrain")
    Path("text.txt").write_text("the film was fine .\n" * 400, encoding="utf-8")
    request = Request(
        (recipe,), ("task.yaml",), teacher="tiny.yaml",
        corpus=("text.txt",) if text else (), overrides=("pretrain.max_length=24",) if text else (),
    )  # fmt: skip
    (plan,) = plan_all(request)
    waiting = {stage.id for stage in plan.recipe.stages if not text and getattr(stage.spec, "enabled", True) == "auto"}
    assert {stage.id for stage in plan.recipe.stages} - waiting <= {node.stage for node in plan.nodes}
    assert (
        plan.nodes[-1].kind.name == ("export" if recipe == "prune" else "quantize") and plan.sizes[plan.nodes[-1].model]
    )
