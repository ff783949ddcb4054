"""Two teachers with different tokenizers, through the command line: run, reported, shipped, verified, exported as checkpoints, ablated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child_imports import HEAVY, imported
from recipe_runs import compress
from scipy.special import log_softmax
from teacher_pairs import make_world

from compress.models.checkpoints.folders import load_classifier, load_tokenizer, pad_id
from compress.models.features.predict import predict_logits
from compress.pipeline.stages.adopt import constant_score
from compress.results import Result, read_result
from compress.spec.task import Synthetic
from compress.tasks import Split, encode, load_training, resolve_task
from compress.tasks.synthetic import generate

pytestmark = pytest.mark.end_to_end

TEACHERS = ("--teacher", "tiny.yaml", "--teacher", "./bytes")
SHORT = ("--set", "finetune.max_steps=9", "--set", "distill.max_steps=9", "--precision", "fp32", "--threads", "1")
COMMAND = ("run", "logits", "--task", "task.yaml", *TEACHERS, "--student", "distil-1l", *SHORT, "--no-bench")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    make_world(folder)
    done = compress(*COMMAND, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def result(world: Path) -> Result:
    (run,) = (world / "runs").glob("logits-*")
    return read_result(run)


def test_the_result_has_each_teachers_scores_and_the_ensembles(world: Path, result: Result) -> None:
    ensemble = result.ensemble
    assert ensemble is not None
    first, second = ensemble.teachers
    assert (result.teacher, first.name, second.name, result.teachers) == ("tiny", "tiny", "bytes", "tiny + bytes")
    assert [f"{model.name} {model.precision}" for model in result.models] == [
        "teacher fp32",
        "student fp32",
        "student int8",
    ]
    assert first.scores == result.models[0].scores
    assert second.origin.kind == "folder"
    assert "model.safetensors" in second.origin.files
    with np.load(world / "runs" / result.run / "predictions.npz") as file:
        arrays = dict(file)
    gold, calibrated = arrays["gold/dev"], []
    for teacher in ensemble.teachers:
        logits = arrays[f"{teacher.predictions}/dev"]
        assert teacher.headline == pytest.approx(100 * float((logits.argmax(1) == gold).mean()))
        assert teacher.temperature is not None
        calibrated.append(np.exp(log_softmax(logits / np.float64(teacher.temperature), axis=1)))
    mean = np.mean(calibrated, axis=0)
    np.testing.assert_allclose(np.exp(arrays["ensemble/dev"]), mean, rtol=1e-9)
    assert ensemble.headline == pytest.approx(100 * float((mean.argmax(1) == gold).mean()))


def test_a_teacher_that_guesses_is_named_in_the_result(world: Path, result: Result) -> None:
    """Only those that score no more than the constant answer, in a run of nine steps."""
    guess = constant_score(load_training(*resolve_task(str(world / "task.yaml")), None))
    assert result.ensemble is not None
    advice = {"tiny": ", give a pre-trained teacher (--teacher)", "bytes": ""}
    guessing = [
        f"teacher {teacher.name} scores {teacher.tuning_score:.1f} on the tuning split, no better than a constant answer ({guess:.1f}): "
        "it has learnt nothing and weighs as much in the teachers' mean as any other; leave it out, or train longer (--set "
        f"finetune.max_steps=N){advice[teacher.name]}, or look at the data"
        for teacher in result.ensemble.teachers
        if teacher.tuning_score <= guess
    ]
    notices = [notice for notice in result.settings["notices"] if "weighs as much" in notice]
    assert notices == guessing
    assert notices


def test_the_second_teacher_can_be_taken_out_and_says_what_was_scored(
    world: Path, result: Result, tmp_path: Path
) -> None:
    run, out = world / "runs" / result.run, tmp_path / "second"
    done = compress("checkpoint", run, "--stage", "teacher-2", "-o", out, cwd=world)
    assert done.returncode == 0, done.stderr
    texts, _ = zip(*generate(Synthetic(generator="sentiment", train=120, dev=40))["dev"], strict=True)
    model: Any = load_classifier(out, kind="classification", labels=result.task.labels, trained=True)
    assert model.config.model_type == "roberta"
    encoded = encode(load_tokenizer(out), Split(([str(text) for text in texts],), np.zeros(40)), 24)
    with np.load(run / "predictions.npz") as file:
        expected = file["teacher-2/dev"]
    np.testing.assert_array_equal(predict_logits(model, encoded, pad_id(model.config.to_dict())), expected)


def test_the_report_has_a_table_of_the_teachers(world: Path, result: Result) -> None:
    page = (world / "runs" / result.run / "report.md").read_text()
    assert result.ensemble is not None
    assert "* Teachers: tiny + bytes" in page
    for name in ("tiny (the baseline)", "bytes", "the teachers' mean"):
        assert f"| {name} | 0 |" in page
    assert (
        f"| the teachers' mean | 0 | – | {result.ensemble.tuning_score:.2f} | {result.ensemble.headline:.2f} |" in page
    )
    assert "Weights of bytes" in page
    points = f"{result.ensemble.headline:.2f}"
    assert f"The teachers' mean, of tiny and bytes, which the student learnt, has {points} points." in page
    assert f" points where the first teacher has {result.models[0].headline:.2f}" in page
    assert f"| logits | the teachers' mean, of 2, which the student learnt | {points} |" in page
    assert "Against the first teacher" in page
    assert "the fp32 teacher" not in page and "the teacher " not in page
    assert "against the first teacher" in (world / "runs" / result.run / "report.html").read_text()
    terminal = compress(*COMMAND, cwd=world).stdout
    assert "logits, the teachers' mean" in terminal and "Against the first teacher" in " ".join(terminal.split())
    assert str(world) not in page


def test_the_same_command_again_finds_all_of_it(world: Path, result: Result) -> None:
    again = compress(*COMMAND, "--json", cwd=world)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == [json.loads(result.model_dump_json())]
    planned = compress("plan", *COMMAND[1:-3], "--json", cwd=world)
    assert planned.returncode == 0, planned.stderr
    (document,) = json.loads(planned.stdout)
    assert document["teachers"] == ["tiny", "bytes"]
    assert all(stage["cached"] for stage in document["stages"])
    assert {"teacher", "teacher-2", "student"} == document["models"].keys()


@pytest.mark.slow
def test_what_is_cached_is_put_together_without_torch(
    world: Path, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world)
    (world / "runs" / result.run / "result.json").unlink()
    assert HEAVY & imported(list(COMMAND)) == set()
    again = read_result(world / "runs" / result.run)
    assert again.ensemble == result.ensemble


@pytest.mark.slow
def test_a_bundle_names_all_teachers(world: Path, result: Result, tmp_path: Path) -> None:
    shipped = compress("ship", world / "runs" / result.run, "-o", tmp_path / "bundle", cwd=world)
    assert shipped.returncode == 0, shipped.stderr
    verified = compress("verify", tmp_path / "bundle", cwd=world)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    card = (tmp_path / "bundle" / "README.md").read_text()
    assert "Made from `tiny` and `bytes` by the recipe `logits`" in card
    assert "The baseline is the first teacher, `tiny`, in fp32 on the same runtime" in card
    ensemble = result.ensemble
    assert ensemble is not None
    licences = ("Apache-2.0", "unknown")
    for teacher, licence in zip(ensemble.teachers, licences, strict=True):
        cells = f"{teacher.temperature:.2f} | {teacher.tuning_score:.2f} | {teacher.headline:.2f} |"
        assert f"\n| {teacher.name} | {licence} | {cells}\n" in card
    assert f"\n| the teachers' mean | | – | {ensemble.tuning_score:.2f} | {ensemble.headline:.2f} |\n" in card
    assert f"The student learnt the teachers' mean: {ensemble.headline:.2f} points" in card
    compress("ship", world / "runs" / result.run, "-o", tmp_path / "first", "--model", "teacher", cwd=world)
    first = (tmp_path / "first" / "README.md").read_text()
    assert "Made from `tiny` by the recipe" in first and "Teachers" not in first


@pytest.mark.slow
def test_an_ablation_has_the_same_teachers(world: Path) -> None:
    options = ("--task", "task.yaml", *TEACHERS, "--student", "distil-1l", *SHORT, "--rows", "without soft_target")
    done = compress("ablate", "logits", *options, "--json", cwd=world)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["teacher"] == "tiny + bytes"
    assert "--teacher tiny.yaml --teacher ./bytes" in document["command"]


@pytest.mark.slow
def test_seeds_of_a_regression(world: Path) -> None:
    """Each seed has its own teachers; of two trainings of one card, the second is given as a folder."""
    common = ("--task", "scores.yaml", "--student", "distil-1l", *SHORT, "--no-bench", "--json")
    one = compress("run", "logits", "--teacher", "tiny.yaml", "--seed", "7", *common, cwd=world)
    assert one.returncode == 0, one.stderr
    run = json.loads(one.stdout)[0]["run"]
    taken = compress("checkpoint", world / "runs" / run, "--stage", "teacher", "-o", world / "seven", cwd=world)
    assert taken.returncode == 0, taken.stderr
    several = ("--teacher", "tiny.yaml", "--teacher", "./seven", "--refit", "--seeds", "2")
    done = compress("run", "logits", *several, *common, cwd=world)
    assert done.returncode == 0, done.stderr
    results = [Result.model_validate(each) for each in json.loads(done.stdout)]
    assert [result.seed for result in results] == [0, 1]
    for result in results:
        assert result.ensemble is not None
        assert [teacher.temperature for teacher in result.ensemble.teachers] == [None, None]
    page = (world / "runs" / "report" / "report.md").read_text()
    assert "| the teachers' mean | 1 | – |" in page
