"""Choose the best of several fine-tunings on the tuning split: how they are planned, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from choice_toys import RATES, choice_world, keys, plan
from tokenizers import Tokenizer

from compress.errors import CompressError
from compress.models.cards import TeacherCard
from compress.pipeline import Plan, Request, plan_all
from compress.pipeline.ablation import rows
from compress.pipeline.preflight import preflight
from compress.tasks import OwnFiles


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    return choice_world(tmp_path, tiny_checkpoint, toy_tokenizer)


def test_a_candidate_is_the_training_with_that_value_alone(world: Path):
    several = plan(world, "finetune.learning_rate=[2e-5, 3e-5]", "finetune.epochs=[3, 4.5]")
    names = [f"teacher-lr{rate}-epochs{epochs}" for rate in ("2e-05", "3e-05") for epochs in ("3", "4.5")]
    labels = [*(f"finetune {name}" for name in names), "choose teacher", "export teacher-fp32", "quantize teacher-int8"]
    assert [node.label for node in several.nodes] == labels
    assert [*several.nodes[4].inputs.values()] == names == sorted(several.candidates)
    for name, rate, epochs in zip(names, ("2e-5", "2e-5", "3e-5", "3e-5"), (3, 4.5, 3, 4.5), strict=True):
        alone = plan(world, f"finetune.learning_rate={rate}", f"finetune.epochs={epochs}")
        assert keys(several)[name] == keys(alone)["teacher"]
        assert not alone.candidates and alone.nodes[0].kind.name == "finetune"
    assert several.checkpoint("teacher") == "teacher"


def test_one_value_in_a_list_is_that_value(world: Path):
    assert keys(plan(world, "finetune.epochs=[4]")) == keys(plan(world, "finetune.epochs=4"))
    several = plan(world, "finetune.epochs=[4]", "finetune.learning_rate=[2e-5, 3e-5]")
    assert [*keys(several)][:3] == ["teacher-lr2e-05", "teacher-lr3e-05", "teacher"]


def test_the_order_which_decides_between_equals_is_in_the_key_of_the_choice(world: Path):
    first, second = (plan(world, f"finetune.epochs=[{values}]") for values in ("3, 4", "4, 3"))
    assert keys(first)["teacher"] != keys(second)["teacher"]
    assert keys(first)["teacher-epochs3"] == keys(second)["teacher-epochs3"]


def test_a_task_may_have_values_of_its_own(world: Path):
    several = plan(
        world, "finetune.epochs=[3, 4]", "finetune.per_task.toy.epochs=7", "finetune.learning_rate=[1e-5,2e-5]"
    )
    assert [*keys(several)][:2] == ["teacher-lr1e-05", "teacher-lr2e-05"]
    assert {node.spec.epochs for node in several.nodes[:3]} == {7.0}  # type: ignore[attr-defined]
    assert not plan(world, "finetune.epochs=[3, 4]", "finetune.per_task.toy.epochs=7").candidates


def test_the_plan_says_what_is_tried_and_what_it_takes(world: Path):
    several = plan(world, RATES, "finetune.epochs=[2, 3]")
    megabytes = 4 * several.sizes["teacher"].parameters / 1e6
    assert several.notes[-1] == (
        "finetune: 6 candidates, of learning_rate 1e-09, 0.01, 0.003 and epochs 2, 3: the best on the tuning split is chosen, of "
        f"equals the first; their checkpoints, {megabytes:,.0f} MB each, stay in the store"
    )


def card(world: Path, rates: str) -> None:
    head = f"name: own\ntitle: Own\nlicence: MIT\ncheckpoint: {{path: {world / 'teacher'}}}\n"
    (world / "own.yaml").write_text(f"{head}finetune: {{learning_rate: {rates}}}\n")


def test_a_card_may_ask_for_it_and_a_recipe_over_it(world: Path):
    card(world, "[1.0e-5, 2.0e-5]")
    assert plan(world, teacher="own.yaml").candidates == {"teacher-lr1e-05", "teacher-lr2e-05"}
    assert not plan(world, "finetune.learning_rate=3e-5", teacher="own.yaml").candidates


def test_too_many_by_card_and_recipe_together_are_refused(world: Path):
    card(world, "[1, 2, 3, 4, 5, 6, 7, 8, 9]")
    assert len(plan(world, teacher="own.yaml").candidates) == 9
    with pytest.raises(CompressError) as caught:
        plan(world, "finetune.epochs=[2, 3]", teacher="own.yaml")
    assert str(caught.value) == (
        "recipe int8, stage finetune: learning_rate: expected at most 16 combinations to choose among, found 18"
    )


def test_a_student_is_trained_with_one_value(world: Path):
    card(world, "[1.0e-5, 2.0e-5]")
    with pytest.raises(CompressError) as caught:
        plan(world, recipe="distilbert", teacher="own.yaml", student="half.yaml")
    assert str(caught.value) == (
        "recipe distilbert, stage distill: learning_rate: card own lists values for `finetune` to choose among, and a student is "
        "trained with one; give it with --set distill.learning_rate=NUMBER"
    )
    with_rate = plan(world, "distill.learning_rate=1e-4", recipe="distilbert", teacher="own.yaml", student="half.yaml")
    student = next(node for node in with_rate.nodes if node.id == "student")
    assert student.inputs["teacher"] == "teacher" and with_rate.candidates


def test_a_candidate_needs_no_more_room_than_its_checkpoint(world: Path, monkeypatch: pytest.MonkeyPatch):
    def needed(planned: Plan) -> float:
        monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(0, 0, 0))  # type: ignore[attr-defined]
        with pytest.raises(CompressError, match="needs about") as caught:
            preflight([planned], world / "runs")
        return float(str(caught.value).partition("about ")[2].partition(" GB")[0])

    monkeypatch.setattr("compress.pipeline.preflight._BYTES_PER_PARAMETER", 28 * 10**5)  # so that a tiny model shows
    monkeypatch.setattr("compress.pipeline.preflight._BYTES_KEPT", 4 * 10**5)
    one, three = (needed(plan(world, *more)) for more in ((), (RATES,)))
    assert three / one == pytest.approx((28 + 3 * 4) / 28, rel=0.05)


def test_an_ablation_varies_what_it_varies_without_it(world: Path):
    all_rows = rows.rows("distilbert", ("finetune.epochs=[2, 3]",), corpus=False)
    assert len(all_rows) > 2
    for row in all_rows:
        assert plan(world, recipe=row.recipe, student="half.yaml").candidates == {"teacher-epochs2", "teacher-epochs3"}


def test_cards_refuse_a_list_for_students():
    fields = {"name": "own", "title": "Own", "licence": "MIT", "checkpoint": {"path": "x"}}
    for distill in ({"epochs": [1, 2]}, {"per_task": {"rte": {"learning_rate": [1e-5, 2e-5]}}}):
        with pytest.raises(ValueError, match=r"distill: (epochs|learning_rate) is a list, which is for `finetune`"):
            TeacherCard.model_validate(fields | {"distill": distill})


def test_one_tuning_example_of_a_regression_cannot_choose(tmp_path: Path):
    for name, count in (("train", 12), ("dev", 20)):
        rows_of = "".join(f"a film of {number} scenes,{number % 5}.5\n" for number in range(count))
        (tmp_path / f"{name}.csv").write_text("text,label\n" + rows_of)
    own = OwnFiles(train=tmp_path / "train.csv", dev=tmp_path / "dev.csv")
    request = Request(("int8",), own=own, teacher="bert-mini", overrides=("finetune.learning_rate=[1e-4, 2e-4]",))
    plans = plan_all(request)
    assert len(plans[0].task.data.tuning) == 1
    with pytest.raises(
        CompressError, match=r"stage finetune: learning_rate: found a list to choose from, and one tuning"
    ):
        preflight(plans, tmp_path / "runs")
    preflight(plan_all(replace(request, overrides=())), tmp_path / "runs")
