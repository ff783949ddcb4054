"""Choose the best of several fine-tunings on the tuning split: how they are planned, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from choice_toys import RATES, TASK, choice_world, plan
from tokenizers import Tokenizer

from compress.errors import CompressError
from compress.models.cards import TeacherCard
from compress.pipeline import Plan
from compress.pipeline.ablation import rows
from compress.pipeline.preflight import preflight


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
        assert several.keys[name] == alone.keys["teacher"]
        assert not alone.candidates and alone.nodes[0].kind.name == "finetune"
    assert several.checkpoint("teacher") == "teacher"


def test_one_value_in_a_list_is_that_value(world: Path):
    assert plan(world, "finetune.epochs=[4]").keys == plan(world, "finetune.epochs=4").keys
    several = plan(world, "finetune.epochs=[4]", "finetune.learning_rate=[2e-5, 3e-5]")
    assert [*several.keys][:3] == ["teacher-lr2e-05", "teacher-lr3e-05", "teacher"]


def test_the_order_which_decides_between_equals_is_in_the_key_of_the_choice(world: Path):
    first, second = (plan(world, f"finetune.epochs=[{values}]") for values in ("3, 4", "4, 3"))
    assert first.keys["teacher"] != second.keys["teacher"]
    assert first.keys["teacher-epochs3"] == second.keys["teacher-epochs3"]


def test_a_task_may_have_values_of_its_own(world: Path):
    several = plan(
        world, "finetune.epochs=[3, 4]", "finetune.per_task.toy.epochs=7", "finetune.learning_rate=[1e-5,2e-5]"
    )
    assert [*several.keys][:2] == ["teacher-lr1e-05", "teacher-lr2e-05"]
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


def test_without_a_score_to_choose_by_several_are_refused(world: Path):
    scored = TASK.replace("metrics: [accuracy]", "kind: regression\nmetrics: [pearson]")
    (world / "task.yaml").write_text(scored)
    rows = [f"film {row},{row / 3}\n" for row in range(5)]
    (world / "train.csv").write_text("text,label\n" + "".join(rows))
    with pytest.raises(CompressError) as caught:
        plan(world, RATES, teacher="learner.yaml")
    assert str(caught.value) == (
        "recipe int8, stage finetune: learning_rate: lists values to choose among, and one tuning example has no correlation to choose "
        "by; give one value, or more tuning examples with --tuning"
    )
    assert not plan(world, "finetune.learning_rate=[1e-3]", teacher="learner.yaml").candidates


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
        return float(str(caught.value).partition("about ")[2].partition(" MB")[0].replace(",", ""))

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
