"""Of several fine-tunings the best on the tuning split: how they are planned, which is taken, and what is said of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.bundle import ship, take_checkpoint
from compress.bundle.document import read_bundle
from compress.errors import CompressError
from compress.models.cards import TeacherCard
from compress.pipeline import Listener, Plan, Request, plan_all, run_all
from compress.pipeline.ablation import rows
from compress.pipeline.preflight import preflight
from compress.pipeline.results.resolved import resolved_recipe
from compress.report import write_report
from compress.report.choices import choice_sentences
from compress.report.page import tasks_of
from compress.results import Result
from compress.spec.recipe import Recipe

BRIEF = ("finetune.batch_size=8", "finetune.max_steps=3", "quantize.method=dynamic")
RATES = "finetune.learning_rate=[1e-9, 1e-2, 3e-3]"
LEARNS = (*BRIEF, RATES, "finetune.max_steps=80", "finetune.epochs=20")
TASK = """\
name: toy
text: [text]
label: label
metrics: [accuracy]
max_length: 16
tuning_fraction: 0.2
files: {train: train.csv, dev: dev.csv}
"""
LEARNER = """\
name: learner
title: BERT, 1 layer × 32, random weights
licence: Apache-2.0
random: {layers: 1, hidden: 32, heads: 2, intermediate: 64, vocabulary: 300, max_positions: 32}
"""


def made(folder: Path, tiny_checkpoint: Callable[[str], Path], tokenizer: Tokenizer) -> Path:
    """Two teachers without a head, a student, and a task that is learnt in some steps at a rate that is high enough."""
    encoder_world(folder, tiny_checkpoint("bert"), tokenizer, text="a film\n")
    (folder / "learner.yaml").write_text(LEARNER)
    (folder / "half.yaml").write_text("name: half\ntitle: Half\nlayers: 1\n")
    (folder / "task.yaml").write_text(TASK)
    for split, count in (("train", 200), ("dev", 40)):
        lines = [f"the {split} film {i} is {('bad', 'good')[i % 2]},{i % 2}\n" for i in range(count)]
        (folder / f"{split}.csv").write_text("text,label\n" + "".join(lines))
    return folder


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    return made(tmp_path, tiny_checkpoint, toy_tokenizer)


def request(
    world: Path, *overrides: str, recipe: str | Recipe = "int8", teacher: str = "teacher", student: str | None = None
) -> Request:
    return Request(
        (recipe,), (str(world / "task.yaml"),), teacher=str(world / teacher), root=world / "runs", precision="fp32",
        threads=1, bench=None, overrides=overrides, student=student and str(world / student),
    )  # fmt: skip


def plan(world: Path, *overrides: str, **options: Any) -> Plan:
    return plan_all(request(world, *overrides, **options))[0]


def keys(planned: Plan) -> dict[str, str]:
    return {node.id: node.key for node in planned.nodes}


def test_a_candidate_is_the_training_with_that_value_alone(world: Path):
    found = plan(world, "finetune.learning_rate=[2e-5, 3e-5]", "finetune.epochs=[3, 4.5]")
    names = [f"teacher-lr{rate}-epochs{epochs}" for rate in ("2e-05", "3e-05") for epochs in ("3", "4.5")]
    labels = [*(f"finetune {name}" for name in names), "choose teacher", "export teacher-fp32", "quantize teacher-int8"]
    assert [node.label for node in found.nodes] == labels
    assert [*found.nodes[4].inputs.values()] == names == sorted(found.candidates)
    for name, rate, epochs in zip(names, ("2e-5", "2e-5", "3e-5", "3e-5"), (3, 4.5, 3, 4.5), strict=True):
        alone = plan(world, f"finetune.learning_rate={rate}", f"finetune.epochs={epochs}")
        assert keys(found)[name] == keys(alone)["teacher"]
        assert not alone.candidates and alone.nodes[0].kind.name == "finetune"
    assert found.checkpoint("teacher") == "teacher"


def test_one_value_in_a_list_is_that_value(world: Path):
    assert keys(plan(world, "finetune.epochs=[4]")) == keys(plan(world, "finetune.epochs=4"))
    found = plan(world, "finetune.epochs=[4]", "finetune.learning_rate=[2e-5, 3e-5]")
    assert [*keys(found)][:3] == ["teacher-lr2e-05", "teacher-lr3e-05", "teacher"]


def test_the_order_which_decides_between_equals_is_in_the_key_of_the_choice(world: Path):
    first, second = (plan(world, f"finetune.epochs=[{values}]") for values in ("3, 4", "4, 3"))
    assert keys(first)["teacher"] != keys(second)["teacher"]
    assert keys(first)["teacher-epochs3"] == keys(second)["teacher-epochs3"]


def test_a_task_may_have_values_of_its_own(world: Path):
    found = plan(
        world, "finetune.epochs=[3, 4]", "finetune.per_task.toy.epochs=7", "finetune.learning_rate=[1e-5,2e-5]"
    )
    assert [*keys(found)][:2] == ["teacher-lr1e-05", "teacher-lr2e-05"]
    assert {node.spec.epochs for node in found.nodes[:3]} == {7.0}  # type: ignore[attr-defined]
    assert not plan(world, "finetune.epochs=[3, 4]", "finetune.per_task.toy.epochs=7").candidates


def test_the_plan_says_what_is_tried_and_what_it_takes(world: Path):
    found = plan(world, RATES, "finetune.epochs=[2, 3]")
    megabytes = 4 * found.sizes["teacher"].parameters / 1e6
    assert found.notes[-1] == (
        "finetune: 6 candidates, of learning_rate 1e-09, 0.01, 0.003 and epochs 2, 3: the tuning split chooses, the first of "
        f"equals; their checkpoints, {megabytes:,.0f} MB each, stay in the store"
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
        "trained with one; say it with --set distill.learning_rate=NUMBER"
    )
    found = plan(world, "distill.learning_rate=1e-4", recipe="distilbert", teacher="own.yaml", student="half.yaml")
    student = next(node for node in found.nodes if node.id == "student")
    assert student.inputs["teacher"] == "teacher" and found.candidates


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


class Told(Listener):
    def __init__(self) -> None:
        self.stages: list[str] = []
        self.notes: list[str] = []

    def stage(self, label: str, cached: bool) -> None:
        self.stages.append(f"{'cached' if cached else 'run'} {label}")

    def notice(self, line: str) -> None:
        self.notes.append(line)


class Ran(NamedTuple):
    world: Path
    result: Result
    told: Told
    plan: Plan


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> Ran:
    world = made(tmp_path_factory.mktemp("ran"), tiny_checkpoint, toy_tokenizer)
    asked, told = request(world, *LEARNS, teacher="learner.yaml"), Told()
    (result,) = run_all(asked, told)
    return Ran(world, result, told, plan_all(asked)[0])


def test_the_best_of_the_tuning_split_becomes_the_teacher(ran: Ran):
    infos = {record.kind: record.info for record in ran.result.stages}
    chosen, candidates = infos["choose teacher"], infos["choose teacher"]["candidates"]
    assert [(each["name"], each["learning_rate"], each["epochs"]) for each in candidates] == [
        ("lr1e-09", 1e-9, 20.0), ("lr0.01", 1e-2, 20.0), ("lr0.003", 3e-3, 20.0)
    ]  # fmt: skip
    scores = [each["tuning_score"] for each in candidates]
    assert scores == [infos[f"finetune teacher-{each['name']}"]["tuning_score"] for each in candidates]
    assert max(scores) > scores[0] + 10  # a rate of 1e-9 learns nothing
    best = candidates[scores.index(max(scores))]
    assert {name: chosen[name] for name in best if name != "name"} == {k: v for k, v in best.items() if k != "name"}
    assert chosen["chosen"] == best["name"]
    store = ran.world / "runs" / ".store"
    weights = {node.id: (store / node.key / "model.safetensors").read_bytes() for node in ran.plan.nodes[:4]}
    assert weights["teacher"] == weights[f"teacher-{best['name']}"]
    assert len({*weights.values()}) == 3


def test_progress_and_log_are_by_candidate(ran: Ran):
    assert ran.told.stages[:4] == [
        "run finetune teacher-lr1e-09", "run finetune teacher-lr0.01", "run finetune teacher-lr0.003", "run choose teacher"
    ]  # fmt: skip
    (told,) = [note for note in ran.told.notes if note.startswith("teacher: chosen on the tuning split: lr0.0")]
    assert told.partition(";")[0].count("lr") == 4
    assert not [note for note in ran.told.notes if "has learnt nothing" in note]  # though the first candidate has not
    log = ran.world / "runs" / ran.result.run / "log.jsonl"
    models = [json.loads(line)["model"] for line in log.read_text().splitlines()]
    assert list(dict.fromkeys(models)) == [f"teacher-lr{rate}" for rate in ("1e-09", "0.01", "0.003")]


def test_the_resolved_recipe_makes_the_same_stages(ran: Ran):
    document = ran.result.recipe
    assert document["stages"][0]["finetune"]["learning_rate"] == [1e-9, 1e-2, 3e-3]
    again = Recipe.model_validate_json(json.dumps(document))
    assert keys(plan(ran.world, recipe=again, teacher="learner.yaml")) == keys(ran.plan)
    assert resolved_recipe(ran.plan) == document
    told = Told()
    (result,) = run_all(request(ran.world, recipe=again, teacher="learner.yaml"), told)
    assert all(line.startswith("cached ") for line in told.stages)
    assert result.models[0].scores == ran.result.models[0].scores


def test_the_checkpoints_of_all_can_be_taken_and_the_report_names_them(ran: Ran):
    run, store = ran.world / "runs" / ran.result.run, ran.world / "runs" / ".store"
    taken = {
        name: take_checkpoint(run, ran.world / "taken" / name, store=store, name=name)
        for name in ("teacher", "teacher-lr1e-09")
    }
    assert all((path / "config.json").is_file() for path in taken.values())
    write_report([ran.result], ran.world / "report", folders=[run])
    page = (ran.world / "report" / "report.md").read_text()
    best = ran.result.stages[3].info
    assert f"chosen {best['chosen']}, learning rate 0.0" in page
    told = (
        f"Fine-tuning of learner: the tuning split chose learning rate {best['learning_rate']} among 3 candidates, with "
        f"{best['tuning_score']:.2f} points there."
    )
    assert f"\n* {told}" in page


def test_a_bundle_has_what_was_chosen(ran: Ran):
    run, out = ran.world / "runs" / ran.result.run, ran.world / "bundle"
    ship(run, out, store=ran.world / "runs" / ".store")
    best = ran.result.stages[3].info
    (choice,) = read_bundle(out).choices
    assert (choice.teacher, choice.settings, choice.candidates) == (
        "learner",
        {"learning_rate": best["learning_rate"]},
        3,
    )
    assert choice.tuning_score == best["tuning_score"]
    assert (
        f"the tuning split chose learning rate {best['learning_rate']} among 3 candidates"
        in (out / "README.md").read_text()
    )


def test_a_damaged_choice_is_made_again_without_training(ran: Ran):
    config = ran.world / "runs" / ".store" / keys(ran.plan)["teacher"] / "config.json"
    text = config.read_text()
    config.unlink()
    config.write_text(text.replace("bert", "bort"))
    told = Told()
    run_all(request(ran.world, *LEARNS, teacher="learner.yaml"), told)
    assert [line for line in told.stages if line.startswith("run")] == ["run choose teacher"]
    assert config.read_text() == text


def test_of_equals_the_first_is_chosen(world: Path):
    told = Told()
    (result,) = run_all(request(world, *BRIEF, "finetune.epochs=[60, 50, 70]"), told)  # each ends after three steps
    info = result.stages[3].info
    assert len({each["tuning_score"] for each in info["candidates"]}) == 1
    assert (info["chosen"], info["epochs"]) == ("epochs60", 60.0)
    (note,) = [note for note in told.notes if "chosen on the tuning split" in note]
    assert note.endswith("; a tie with epochs50, epochs70: of equals the first one written is taken")
    (sentence,) = choice_sentences(tasks_of([result])[0])
    assert "the tuning split chose epochs 60 among 3 candidates" in sentence
    assert sentence.endswith(" A tie with epochs 50 and epochs 70: of equals the first one written is taken.")


def test_where_files_cannot_be_linked_they_are_copied(world: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*paths: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("compress.pipeline.stages.choose.os.link", refuse)
    asked = request(world, *BRIEF, "finetune.epochs=[60, 50]")
    run_all(asked)
    ours = keys(plan_all(asked)[0])
    first, chosen = (
        world / "runs" / ".store" / ours[name] / "model.safetensors" for name in ("teacher-epochs60", "teacher")
    )
    assert first.read_bytes() == chosen.read_bytes()
    assert first.stat().st_nlink == chosen.stat().st_nlink == 1


def test_a_choice_among_trainings_that_learnt_nothing_is_said(world: Path):
    told = Told()
    run_all(request(world, *BRIEF, "finetune.learning_rate=[1e-9, 1e-10]"), told)
    (note,) = [note for note in told.notes if "has learnt nothing" in note]
    assert note.startswith("teacher scores ") and "--set finetune.epochs=N" in note


def test_an_ablation_varies_what_it_varies_without_it(world: Path):
    found = rows.rows("distilbert", ("finetune.epochs=[2, 3]",), corpus=False)
    assert len(found) > 2
    for row in found:
        assert plan(world, recipe=row.recipe, student="half.yaml").candidates == {"teacher-epochs2", "teacher-epochs3"}


def test_cards_refuse_a_list_for_students():
    fields = {"name": "own", "title": "Own", "licence": "MIT", "checkpoint": {"path": "x"}}
    for distill in ({"epochs": [1, 2]}, {"per_task": {"rte": {"learning_rate": [1e-5, 2e-5]}}}):
        with pytest.raises(ValueError, match=r"distill: (epochs|learning_rate) is a list, which is for `finetune`"):
            TeacherCard.model_validate(fields | {"distill": distill})
