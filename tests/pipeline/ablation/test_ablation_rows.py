"""The rows of an ablation: what each changes, and what they all share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compress.catalog import load_recipe
from compress.errors import CompressError
from compress.pipeline import Request, plan_all
from compress.pipeline.ablation.rows import Row, rows
from compress.pipeline.ablation.run import with_equal_training
from compress.spec.stages import Distill
from compress.training.schedule import total_steps

pytestmark = pytest.mark.end_to_end

TINYBERT = [
    "full",
    "without general",
    "without augment",
    "without embedding_mse",
    "without hidden_mse",
    "without attention_mse",
    "without hidden_mse and attention_mse",
    "without intermediate",
    "without soft_cross_entropy",
    "without intermediate and soft_cross_entropy",
    "map top",
    "map bottom",
]
LAYERS = "{name: layers, losses: [{name: hidden_mse}, {name: embedding_mse}%s], %s}"
ANSWERS = "{name: answers, losses: [{name: soft_target}, {name: hard_label, weight: 0.5}]}"


def by_label(name: str | Path, *overrides: str, corpus: bool = True) -> dict[str, Row]:
    return {row.label: row for row in rows(str(name), overrides, corpus=corpus)}


def stage(row: Row, name: str) -> Any:
    return next(stage.spec for stage in row.recipe.stages if stage.id == name)


def weights(row: Row, name: str) -> dict[str, float]:
    return {loss.name: loss.weight for loss in stage(row, name).losses}


@pytest.fixture
def recipe(tmp_path: Path) -> Callable[..., Path]:
    """Return a function: stages, as YAML lines -> a recipe file."""

    def write(*stages: str, name: str = "mine") -> Path:
        lines = [f"name: {name}", "title: Mine", "teacher: bert-mini", "student: tiny-2l", "stages:", "  - finetune:"]
        path = tmp_path / f"{name}.yaml"
        path.write_text("\n".join([*lines, *(f"  - {stage}" for stage in stages), "  - export:"]), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("name", ["tinybert", "tinybert-small"])
def test_every_part_of_tinybert_has_its_row(name: str) -> None:
    all_rows = rows(name, corpus=True)
    assert [row.label for row in all_rows] == TINYBERT
    assert len({row.recipe.name for row in all_rows}) == len(all_rows)
    assert all(row.recipe.name.startswith(f"{name}-") for row in all_rows)
    assert all(stage.kind != "quantize" for row in all_rows for stage in row.recipe.stages)


def test_the_full_row_is_the_recipe_without_quantization() -> None:
    (full, *_), recipe = rows("tinybert", corpus=True), load_recipe("tinybert")
    assert full.recipe.stages == tuple(stage for stage in recipe.stages if stage.kind != "quantize")
    assert (full.recipe.title, full.recipe.paper) == (recipe.title, recipe.paper)


@pytest.mark.parametrize("limit", [None, 50])
def test_a_student_without_a_part_is_trained_as_long(limit: int | None) -> None:
    """As long as the full recipe's plan, wherever the lengths come from: here the teacher's card and the recipe."""
    limits = tuple(f"{name}.max_steps={limit}" for name in ("intermediate", "prediction")) if limit else ()
    overrides = ("prediction.epochs=3", "prediction.evaluate_every=0.5", "augment.copies=4", *limits)
    row_of = {row.label: row for row in rows("tinybert-small", ("intermediate.epochs=7", *overrides), corpus=False)}
    request = Request(("tinybert-small",), ("toy-sentiment",), teacher="bert-mini")

    def lengths(label: str) -> dict[str, tuple[float, float | None, float]]:
        full = plan_all(replace(request, recipes=(row_of["full"].recipe,)))
        row = row_of[label] if label == "full" else with_equal_training(row_of[label], full)
        (plan,) = plan_all(replace(request, recipes=(row.recipe,)))
        specs = {node.id: node.spec for node in plan.nodes if isinstance(node.spec, Distill)}
        return {name: (spec.epochs, spec.max_steps, spec.evaluate_every) for name, spec in specs.items()}

    assert lengths("full") == {"intermediate": (7, limit, 1), "prediction": (3, limit, 0.5)}
    assert lengths("without intermediate") == {"prediction": (10, 2 * limit if limit else None, 0.5)}
    assert lengths("without augment") == {"intermediate": (35, limit, 5), "prediction": (15, limit, 2.5)}
    assert lengths("without attention_mse") == lengths("full")
    assert lengths("without intermediate and soft_cross_entropy") == lengths("without intermediate")


@pytest.mark.parametrize(
    ("limits", "steps"),
    [
        (("prediction.max_steps=50",), 7 * 169 + 50),
        (("intermediate.max_steps=50",), 50 + 3 * 169),
        (("intermediate.max_steps=50", "prediction.max_steps=9999"), 50 + 3 * 169),
        (("intermediate.batch_size=64", "intermediate.max_steps=85"), 169 + 3 * 169),  # one pass, in half as many steps
    ],
)
def test_the_passes_of_a_stage_end_where_its_steps_do(limits: tuple[str, ...], steps: int) -> None:
    """With 5,400 examples in batches of 32."""
    overrides = ("intermediate.epochs=7", "prediction.epochs=3", "augment.enabled=false", *limits)
    row_of = {row.label: row for row in rows("tinybert-small", overrides, corpus=False)}
    request = Request(("tinybert-small",), ("toy-sentiment",), teacher="bert-mini")
    full = plan_all(replace(request, recipes=(row_of["full"].recipe,)))
    (plan,) = plan_all(replace(request, recipes=(with_equal_training(row_of["without intermediate"], full).recipe,)))
    (spec,) = (node.spec for node in plan.nodes if isinstance(node.spec, Distill))
    assert total_steps(spec, 169) == steps


def test_lengths_of_the_teachers_card_count_too() -> None:
    """The recipe `minilm` takes them from the card; bert-mini's has 2 epochs."""
    row_of = {row.label: row for row in rows("minilm", corpus=False)}
    request = Request(("minilm",), ("toy-sentiment",), teacher="bert-mini")
    full = plan_all(replace(request, recipes=(row_of["full"].recipe,)))
    row = with_equal_training(row_of["without intermediate"], full)
    (plan,) = plan_all(replace(request, recipes=(row.recipe,)))
    assert [node.spec.epochs for node in plan.nodes if isinstance(node.spec, Distill)] == [4]


def test_each_row_changes_its_part_and_nothing_else() -> None:
    row_of = by_label("tinybert")
    assert stage(row_of["without general"], "general").enabled is False
    assert stage(row_of["without augment"], "augment").enabled is False
    assert stage(row_of["without intermediate"], "intermediate").enabled is False
    assert weights(row_of["without hidden_mse"], "intermediate") == {
        "embedding_mse": 1,
        "hidden_mse": 0,
        "attention_mse": 1,
    }
    both = weights(row_of["without hidden_mse and attention_mse"], "intermediate")
    assert both == {"embedding_mse": 1, "hidden_mse": 0, "attention_mse": 0}
    assert weights(row_of["without soft_cross_entropy"], "prediction") == {"hard_label": 1}
    assert stage(row_of["without soft_cross_entropy"], "intermediate").enabled is True
    plain = row_of["without intermediate and soft_cross_entropy"]
    assert (stage(plain, "intermediate").enabled, weights(plain, "prediction")) == (False, {"hard_label": 1})
    assert stage(row_of["map top"], "intermediate").layer_map == "top"
    full = {stage.id: stage for stage in row_of["full"].recipe.stages}
    for row in row_of.values():
        changed = {stage.id for stage in row.recipe.stages if stage != full[stage.id]}
        assert len(changed) == {"full": 0, plain.label: 2}.get(row.label, 1)
        assert weights(row, "general") == weights(row_of["full"], "general")


def test_without_plain_text_or_with_a_stage_switched_off_there_is_no_row_for_it() -> None:
    assert "without general" not in by_label("tinybert", corpus=False)
    assert "without general" not in by_label("tinybert", "general.enabled=false")
    assert "without augment" not in by_label("tinybert", "augment.enabled=false")
    assert not any("intermediate" in label for label in by_label("tinybert", "intermediate.enabled=false"))


def test_overrides_are_in_every_row() -> None:
    for row in by_label("tinybert", "intermediate.max_steps=7", "prediction.losses=[{name: soft_target}]").values():
        assert stage(row, "intermediate").max_steps == 7
        gold = "soft_target" in row.label
        assert weights(row, "prediction") == ({"hard_label": 1} if gold else {"soft_target": 1})


def test_the_map_of_the_recipe_is_no_row_and_uniform_is_one_beside_another() -> None:
    assert {label for label in by_label("tinybert", "intermediate.layer_map=top") if label.startswith("map")} == {
        "map uniform",
        "map bottom",
    }


def test_rows_follow_from_the_recipe(recipe: Callable[..., Path]) -> None:
    mine = recipe(f"distill: {LAYERS % ('', 'layer_map: bottom')}", f"distill: {ANSWERS}")
    row_of = by_label(mine)
    assert [*row_of] == [
        "full",
        "without hidden_mse",
        "without embedding_mse",
        "without layers",
        "without soft_target",
        "without layers and soft_target",
        "map uniform",
        "map top",
    ]
    assert weights(row_of["without soft_target"], "answers") == {"hard_label": 0.5}
    assert [*by_label("minilm", corpus=False)] == [
        "full",
        "without intermediate",
        "without soft_cross_entropy",
        "without intermediate and soft_cross_entropy",
    ]
    assert [*by_label("distilbert")] == ["full", "without hidden_cosine", "without soft_target"]


def test_a_loss_without_weight_is_no_part(recipe: Callable[..., Path]) -> None:
    mine = recipe(f"distill: {LAYERS % (', {name: attention_mse, weight: 0}', 'epochs: 1')}", f"distill: {ANSWERS}")
    assert not any("attention_mse" in label for label in by_label(mine))


def test_long_names_stay_names(recipe: Callable[..., Path]) -> None:
    mine = recipe(f"distill: {LAYERS % ('', 'epochs: 1')}", f"distill: {ANSWERS}", name="a" * 64)
    names = [row.recipe.name for row in rows(str(mine), corpus=False)]
    assert max(map(len, names)) == 64
    assert len(set(names)) == len(names)


def test_a_recipe_without_parts_is_refused() -> None:
    with pytest.raises(CompressError, match="int8: there is nothing to leave out"):
        rows("int8", corpus=True)


def test_losses_of_one_task_are_refused(recipe: Callable[..., Path]) -> None:
    own = "per_task: {cola: {losses: [{name: hidden_mse}]}}"
    with pytest.raises(CompressError, match="stage layers: per_task sets `losses` for cola"):
        rows(str(recipe(f"distill: {LAYERS % ('', own)}", f"distill: {ANSWERS}")), corpus=False)


def test_a_stage_and_a_loss_of_one_name_have_a_row_each(recipe: Callable[..., Path]) -> None:
    layers = "distill: {name: hidden_mse, losses: [{name: hidden_mse}, {name: attention_mse}]}"
    labels = [row.label for row in rows(str(recipe(layers, "distill: {losses: [{name: soft_target}]}")), corpus=False)]
    assert len(set(labels)) == len(labels)
    assert {"without hidden_mse", "without stage hidden_mse"} <= {*labels}
