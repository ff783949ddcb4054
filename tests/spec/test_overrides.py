from __future__ import annotations

from typing import Any

import pytest

from compress.errors import CompressError
from compress.spec.document import parse
from compress.spec.overrides import apply_overrides
from compress.spec.recipe import Recipe
from compress.spec.source import validate

TEXT = """\
name: mine
title: Mine
student: a
stages:
  - finetune
  - distill:
      epochs: 3
      losses:
        - {name: soft_target}
        - {name: hard_label}
  - export:
  - quantize:
"""


def changed(*overrides: str) -> Recipe:
    document = parse(TEXT, "mine.yaml")
    apply_overrides(document, overrides, Recipe.model_fields)
    return validate(document, Recipe)


def mistakes(*overrides: str) -> list[str]:
    with pytest.raises(CompressError) as caught:
        changed(*overrides)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    "path", ["stages[1].distill.epochs", "stages.1.distill.epochs", "distill.epochs", " distill.epochs "]
)
def test_four_ways_to_one_field(path):
    assert changed(f"{path}=5").stages[1].spec.epochs == 5.0


def test_values_are_yaml_and_exponents_are_numbers():
    recipe = changed(
        "distill.learning_rate=1e-4",
        "distill.weight_decay=0",
        "distill.schedule=cosine",
        "distill.losses[0].weight=2E1",
        "quantize.exclude=[a, b]",
        "quantize.per_channel=false",
        "student={12: x, 6: y}",
        "title=a=b:c",
        'description="1e5"',
        "precision=bf16",
    )
    distill, quantize = recipe.stages[1].spec, recipe.stages[3].spec
    assert (distill.learning_rate, distill.weight_decay, distill.schedule) == (1e-4, 0.0, "cosine")
    assert distill.losses[0].weight == 20.0
    assert (quantize.exclude, quantize.per_channel) == (("a", "b"), False)
    assert recipe.student == {12: "x", 6: "y"}
    assert (recipe.title, recipe.precision) == ("a=b:c", "bf16")


def test_what_the_file_leaves_out_can_be_set():
    recipe = changed(
        "finetune.epochs=2",
        "finetune.per_task.rte.epochs=9",
        'finetune.per_task["my.task"].epochs=7',
        "export.opset=22",
    )
    finetune = recipe.stages[0].spec
    assert finetune.for_task("rte") == {"epochs": 9}
    assert finetune.for_task("my.task") == {"epochs": 7}
    assert finetune.for_task("sst2") == {"epochs": 2.0}
    assert recipe.stages[2].spec.opset == 22


def test_only_the_fields_named_change():
    assert changed("distill.epochs=5").model_dump(exclude={"stages"}) == changed().model_dump(exclude={"stages"})
    assert changed("distill.epochs=3") == changed()


def test_the_last_of_two_wins_and_they_are_applied_in_order():
    assert changed("distill.epochs=5", "distill.epochs=6").stages[1].spec.epochs == 6.0
    recipe = changed("stages[1].distill={losses: [{name: hard_label}]}", "distill.losses[0].weight=3")
    assert [loss.weight for loss in recipe.stages[1].spec.losses] == [3.0]


COPIES = """\
name: mine
title: Mine
student: a
stages:
  - finetune:
  - augment:
      copies: 20
      per_task:
        cola: {copies: 30}
        rte: {copies: 30, candidates: 5}
  - distill:
      epochs: 20
      losses: [{name: soft_target}]
      per_task:
        rte: {epochs: 50, losses: [{name: hard_label}]}
  - export:
"""


def for_rte(*overrides: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings of the stages augment and distill for the task."""
    document = parse(COPIES, "mine.yaml")
    apply_overrides(document, overrides, Recipe.model_fields)
    _, augment, distill, _ = validate(document, Recipe).stages
    return augment.spec.for_task("rte"), distill.spec.for_task("rte")


def test_what_is_set_for_a_stage_wins_over_what_the_recipe_gives_a_task():
    augment, distill = for_rte("augment.copies=3", "stages[2].distill.losses[0].weight=2")
    assert (augment["copies"], augment["candidates"]) == (3, 5)
    assert [(loss["name"], loss["weight"]) for loss in distill["losses"]] == [("soft_target", 2.0)]
    assert distill["epochs"] == 50
    assert for_rte("augment.candidates=9")[0] == {"copies": 30, "candidates": 9}


@pytest.mark.parametrize(
    "own",
    [
        "augment.per_task.rte.copies=7",
        "stages[1].augment.per_task.rte={copies: 7}",
        "augment.per_task={rte: {copies: 7}}",
    ],
)
def test_what_is_set_for_a_task_wins_over_what_is_set_for_the_stage_in_either_order(own):
    for overrides in ([own, "augment.copies=3"], ["augment.copies=3", own]):
        assert for_rte(*overrides)[0]["copies"] == 7


def test_a_task_that_is_set_keeps_no_other_tasks_fields():
    document = parse(COPIES, "mine.yaml")
    apply_overrides(document, ["augment.copies=3", "augment.per_task.rte.copies=7"], Recipe.model_fields)
    assert validate(document, Recipe).stages[1].spec.for_task("cola") == {"copies": 3}


def test_a_student_per_depth():
    assert changed("student={}", "student.12=x", "student[6]=y").student == {12: "x", 6: "y"}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("distill.epochs=abc", "--set distill.epochs: expected a number, found the text 'abc'"),
        ("distill.epohs=3", "--set distill.epohs: unknown key; did you mean `epochs`?"),
        ("stages.1.distill.epochs=abc", "--set stages.1.distill.epochs: expected a number, found the text 'abc'"),
        (
            "distill.losses[1].weight=-1",
            "--set distill.losses[1].weight: expected a number at least 0, found the number -1",
        ),
        (
            "distill.losses=[{name: hard_labell}]",
            "--set distill.losses[0]: unknown name `hard_labell`; did you mean `hard_label`?",
        ),
        (
            "distill.losses[0].name=hard_labell",
            "--set distill.losses[0].name: unknown name `hard_labell`; did you mean `hard_label`?",
        ),
        (
            "distill.losses=[{name: hard_label}, {name: hard_label}]",
            "--set distill.losses: each at most once, found ['hard_label', 'hard_label']",
        ),
        ("stages[0]=finetun", "--set stages[0].finetun: unknown key; did you mean `finetune`?"),
        ("student=3", "--set student: expected text or a mapping, found the number 3"),
        ("epochs=3", "--set epochs: unknown key; a setting of stages: `finetune.epochs` or `distill.epochs`"),
        ("titel=x", "--set titel: unknown key; did you mean `title`?"),
        (
            "distil.epochs=3",
            "--set distil.epochs: `mine` has neither a field nor a stage `distil`; did you mean `distill`?",
        ),
        ("stages[9].x=1", "--set stages[9].x: `stages` has 4 entries, counted from 0; there is no [9]"),
        ("stages.first.x=1", "--set stages.first.x: `stages` is a list; expected an index such as [0], found `first`"),
        ("title.x=3", "--set title.x: `title` is 'Mine', which has no `x` inside"),
        ("epochs", "--set epochs: expected PATH=VALUE, e.g. distill.epochs=3"),
        ("=3", "--set : expected PATH=VALUE, e.g. distill.epochs=3"),
        ("a[x]=3", "--set a[x]: not a path at `[x]`; expected e.g. stages[1].distill.epochs"),
        (
            "title=[1",
            "--set title: '[1' is not a YAML value: expected ',' or ']', but got '<stream end>' while parsing a flow sequence; "
            "quote it if it is text",
        ),
    ],
)
def test_each_mistake_is_told_at_its_path(override, expected):
    assert mistakes(override) == [expected]


def test_mistakes_of_the_file_and_of_overrides_are_told_apart():
    document = parse(TEXT.replace("epochs: 3", "epoch: 3"), "mine.yaml")
    apply_overrides(document, ["distill.warmup=2"], Recipe.model_fields)
    with pytest.raises(CompressError) as caught:
        validate(document, Recipe)
    assert sorted(str(caught.value).splitlines()) == [
        "--set distill.warmup: expected a number at least 0 and below 1, found the number 2",
        "mine.yaml:7: stages[1].distill.epoch: unknown key; did you mean `epochs`?",
    ]


def test_several_wrong_paths_are_reported_together():
    assert len(mistakes("stages[9].x=1", "title.x=3", "nonsense")) == 3
