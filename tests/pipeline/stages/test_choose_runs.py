"""Choose the best of several fine-tunings on the tuning split: which becomes the teacher, and what is reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from choice_toys import BRIEF, LEARNS, Recorder, choice_world, plan, request
from tokenizers import Tokenizer

from compress.bundle import ship, take_checkpoint
from compress.bundle.document import read_bundle
from compress.pipeline import Plan, plan_all, run_all
from compress.pipeline.results.resolved import resolved_recipe
from compress.report import write_report
from compress.report.page import tasks_of
from compress.report.sections.finetuning_choice import choice_sentences
from compress.results import Result
from compress.spec.recipe import Recipe


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    return choice_world(tmp_path, tiny_checkpoint, toy_tokenizer)


class Ran(NamedTuple):
    world: Path
    result: Result
    listener: Recorder
    plan: Plan


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> Ran:
    world = choice_world(tmp_path_factory.mktemp("ran"), tiny_checkpoint, toy_tokenizer)
    three_rates, listener = request(world, *LEARNS, teacher="learner.yaml"), Recorder()
    (result,) = run_all(three_rates, listener)
    return Ran(world, result, listener, plan_all(three_rates)[0])


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
    assert ran.listener.stages[:4] == [
        "run finetune teacher-lr1e-09", "run finetune teacher-lr0.01", "run finetune teacher-lr0.003", "run choose teacher"
    ]  # fmt: skip
    (note,) = [note for note in ran.listener.notes if note.startswith("teacher: chosen on the tuning split: lr0.0")]
    assert note.partition(";")[0].count("lr") == 4
    assert not [
        note for note in ran.listener.notes if "has learnt nothing" in note
    ]  # although the first candidate has not
    log = ran.world / "runs" / ran.result.run / "log.jsonl"
    models = [json.loads(line)["model"] for line in log.read_text().splitlines()]
    assert list(dict.fromkeys(models)) == [f"teacher-lr{rate}" for rate in ("1e-09", "0.01", "0.003")]


def test_the_resolved_recipe_makes_the_same_stages(ran: Ran):
    document = ran.result.recipe
    assert document["stages"][0]["finetune"]["learning_rate"] == [1e-9, 1e-2, 3e-3]
    again = Recipe.model_validate_json(json.dumps(document))
    assert plan(ran.world, recipe=again, teacher="learner.yaml").keys == ran.plan.keys
    assert resolved_recipe(ran.plan) == document
    listener = Recorder()
    (result,) = run_all(request(ran.world, recipe=again, teacher="learner.yaml"), listener)
    assert all(line.startswith("cached ") for line in listener.stages)
    assert result.models[0].scores == ran.result.models[0].scores


@pytest.mark.slow
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
    sentence = (
        f"Fine-tuning of learner: the tuning split chose learning rate {best['learning_rate']} among 3 candidates, with "
        f"{best['tuning_score']:.2f} points there."
    )
    assert f"\n* {sentence}" in page


def test_seeds_that_share_one_teacher_are_told_of_its_choice_once(ran: Ran, tmp_path: Path):
    key, info = ran.result.stages[3].key, ran.result.stages[3].info
    other = ran.result.model_copy(
        update={
            "seed": 1,
            "stages": (
                *ran.result.stages[:3],
                ran.result.stages[3].model_copy(update={"key": "0" * len(key)}),
                *ran.result.stages[4:],
            ),
        }
    )
    shared, alone = [ran.result.model_copy(update={"seed": seed}) for seed in (0, 1, 2)], [ran.result, other]
    choice = f": the tuning split chose learning rate {info['learning_rate']} among 3 candidates"
    write_report(shared, tmp_path)
    for page in ("report.md", "report.html"):
        assert (tmp_path / page).read_text().count("Fine-tuning of learner") == 1
        assert f"Fine-tuning of learner{choice}" in (tmp_path / page).read_text()
    assert [line.partition(" among")[0] for line in choice_sentences(tasks_of(alone)[0])] == [
        f"Fine-tuning of learner, seed {seed}{choice}".partition(" among")[0] for seed in (0, 1)
    ]


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
    config = ran.world / "runs" / ".store" / ran.plan.keys["teacher"] / "config.json"
    text = config.read_text()
    config.unlink()
    config.write_text(text.replace("bert", "bort"))
    listener = Recorder()
    run_all(request(ran.world, *LEARNS, teacher="learner.yaml"), listener)
    assert [line for line in listener.stages if line.startswith("run")] == ["run choose teacher"]
    assert config.read_text() == text


def test_of_equals_the_first_is_chosen(world: Path):
    listener = Recorder()
    (result,) = run_all(request(world, *BRIEF, "finetune.epochs=[60, 50, 70]"), listener)  # each ends after three steps
    info = result.stages[3].info
    assert len({each["tuning_score"] for each in info["candidates"]}) == 1
    assert (info["chosen"], info["epochs"]) == ("epochs60", 60.0)
    (note,) = [note for note in listener.notes if "chosen on the tuning split" in note]
    assert note.endswith("; a tie with epochs50, epochs70: the first one listed is chosen")
    assert note in result.settings["notices"]
    (sentence,) = choice_sentences(tasks_of([result])[0])
    assert "the tuning split chose epochs 60 among 3 candidates" in sentence
    assert sentence.endswith(" A tie with epochs 50 and epochs 70: of equals the first one written is taken.")


def test_where_files_cannot_be_linked_they_are_copied(world: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*paths: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("compress.pipeline.stages.choose.os.link", refuse)
    two_lengths = request(world, *BRIEF, "finetune.epochs=[60, 50]")
    run_all(two_lengths)
    ours = plan_all(two_lengths)[0].keys
    first, chosen = (
        world / "runs" / ".store" / ours[name] / "model.safetensors" for name in ("teacher-epochs60", "teacher")
    )
    assert first.read_bytes() == chosen.read_bytes()
    assert first.stat().st_nlink == chosen.stat().st_nlink == 1


def test_a_choice_among_trainings_that_learnt_nothing_is_said(world: Path):
    listener = Recorder()
    run_all(request(world, *BRIEF, "finetune.learning_rate=[1e-9, 1e-10]"), listener)
    (note,) = [note for note in listener.notes if "has learnt nothing" in note]
    assert note.startswith("teacher scores ") and "--set finetune.epochs=N" in note
