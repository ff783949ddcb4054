"""What a plan says about its data and its training, and what `run` says before it starts."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from child_imports import HEAVY, imported
from estimated import gpu_of, request_of
from recipe_runs import compress as command
from tokenizers import Tokenizer
from worlds import encoder_world

import compress
from compress.catalog import names
from compress.cli.plan_totals import training_total
from compress.cli.plans import plan_documents
from compress.errors import CompressError, Interrupted
from compress.models.dimensions import dimensions
from compress.pipeline import Listener, Request, plan_all, run_all
from compress.pipeline.estimate import data_line, estimate, format_duration, smaller_recipe
from compress.pipeline.lengths import mean_length
from compress.pipeline.training import throughput
from compress.pipeline.training.log import saved_step
from compress.pipeline.training.throughput import model_flops, probe
from compress.training.loop import StepReport


class Lines(Listener):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def outlook(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def world(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Path:
    encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n" * 90)
    return tmp_path


def test_steps_are_those_of_the_training(world: Path) -> None:
    request = request_of(world, "finetune.epochs=3", "finetune.batch_size=8")
    listener = Lines()
    before = estimate(plan_all(request), request.root)
    assert [work.steps for work in before.work] == [15]  # of 36 examples
    assert before.seconds is None
    assert "no such model has been trained here yet" in str(before)
    run_all(request, listener)
    assert listener.lines == [
        "data: 36 train, 4 tuning texts; classification, 2 labels",
        "measuring how fast this machine trains, by a probe of a few steps",
        "training: 15 steps, less than a minute on this machine, judging by a probe of a few steps",
    ]
    assert str(estimate(plan_all(request), request.root)) == "training: none"


class Stopping(Lines):
    """Interrupts the training after a few steps, as a signal would."""

    def step(self, report: StepReport) -> None:
        if report.step == 5:
            raise Interrupted("stopped", 2)


@pytest.mark.slow
def test_steps_that_an_interrupted_training_has_taken_are_not_left(world: Path) -> None:
    request = replace(request_of(world, "finetune.epochs=3", "finetune.batch_size=8"), checkpoint_seconds=-1)
    (before,) = estimate(plan_all(request), request.root).work
    with pytest.raises(Interrupted):
        run_all(request, Stopping())
    (plan,) = plan_all(request)
    done = saved_step(request.root / ".store" / ".building" / before.key / "work")
    assert done is not None and done >= 3
    (left,) = estimate([plan], request.root).work
    assert (before.steps, left.steps) == (15, 15 - done)
    assert left.flops == pytest.approx(before.flops * (15 - done) / 15)
    listener = Lines()
    run_all(request, listener)
    (forecast,) = [line for line in listener.lines if line.startswith("training: ")]
    assert forecast.startswith(f"training: {15 - done} steps, ")


def test_what_this_machine_did_before_is_the_measure(world: Path) -> None:
    run_all(request_of(world, "finetune.max_steps=2"))
    (manifest,) = [
        path for path in (world / "runs" / ".store").glob("*/manifest.json") if '"finetune"' in path.read_text()
    ]
    rate = json.loads(manifest.read_text())["info"]["model_flops_per_second"]
    longer = request_of(world, "finetune.max_steps=1000", "finetune.epochs=500")
    listener = Lines()
    forecast = estimate(plan_all(longer), longer.root)
    assert forecast.seconds == pytest.approx(forecast.work[0].flops / rate)
    assert "by what it trained before" in str(forecast)
    again = request_of(world, "finetune.max_steps=3")
    run_all(again, listener)
    assert "by what it trained before" in listener.lines[1]
    run_all(again, listener)
    assert len(listener.lines) == 2  # nothing is left to do


def test_copies_and_text_are_counted(world: Path) -> None:
    def steps(recipe: str, *overrides: str, corpus: bool) -> dict[str, int | None]:
        request = replace(request_of(world, *overrides, recipe=recipe, corpus=corpus), teacher="bert-mini")
        return {work.label.split()[-1]: work.steps for work in estimate(plan_all(request), request.root).work}

    counts = steps("tinybert", "augment.copies=3", "intermediate.epochs=20", "prediction.epochs=3", corpus=False)
    assert counts["intermediate"] == 20 * 5  # 36 examples and three copies of each, in batches of 32
    assert counts["prediction"] == 3 * 5
    (world / "text.txt").write_text("a film\n" * 64 * 128)  # 7 bytes each, with about 4.5 bytes per token
    tokens = 7 * 64 * 128 / 4.5
    counts = steps("bert-pretrain", "pretrain.epochs=1", "pretrain.batch_size=4", "pretrain.max_length=64", corpus=True)
    assert counts["pretrained"] == math.ceil(round(tokens / 64) / 4)


@pytest.mark.parametrize(
    ("overrides", "answers"),
    [(("distill.epochs=4",), 36), (("distill.epochs=4", "distill.max_steps=1"), 32), (("distill.epochs=0.5",), 32)],
)
def test_a_teacher_whose_logits_are_kept_answers_each_example_once(
    world: Path, overrides: tuple[str, ...], answers: int
) -> None:
    """36 examples in batches of 32; if training does not use them all, the teacher predicts in each step."""
    request = replace(request_of(world, *overrides, recipe="logits"), student="distil-1l")
    (plan,) = plan_all(request)
    (work,) = (work for work in estimate([plan], request.root).work if work.label.endswith("student"))
    student, teacher = (plan.sizes[name].flops_per_example(mean_length(plan)) for name in ("student", "teacher"))
    assert work.steps is not None
    assert work.flops == pytest.approx(work.steps * 32 * 3 * student + answers * teacher)


def test_a_pruned_teacher_learns_from_the_whole_one(world: Path) -> None:
    """What pruning leaves is unknown before the run, so it counts as large as its teacher, which runs beside it."""
    request = request_of(world, recipe="prune-distil")
    (plan,) = plan_all(request)
    (work,) = (work for work in estimate([plan], request.root).work if work.label.startswith("distill"))
    assert work.model is plan.sizes["teacher"] and work.steps is not None
    assert work.flops == pytest.approx(work.steps * 32 * 4 * work.model.flops_per_example(mean_length(plan)))


@pytest.mark.parametrize(
    ("losses", "answers"),
    [("[{name: soft_target}, {name: hidden_mse}]", None), ("[{name: soft_target}]", 36), ("[{name: hard_label}]", 0)],
)
@pytest.mark.parametrize(("recipe", "student"), [("distilbert-int8-qat", "distil-1l"), ("alone", None)])
def test_training_for_int8_learns_from_its_own_model(
    world: Path, recipe: str, student: str | None, losses: str, answers: int | None
) -> None:
    """Whatever its teacher was. `answers`: examples that it predicts in advance, None: at every step."""
    (world / "alone.yaml").write_text(
        "{name: alone, title: A, teacher: bert-mini, stages: [finetune: , quantize_aware: , export: , quantize: {method: qat}]}"
    )
    request = request_of(world, recipe=str(world / "alone.yaml") if student is None else recipe)
    words = (f"quantize_aware.losses={losses}", "quantize_aware.epochs=2")
    (plan,) = plan_all(replace(request, student=student, overrides=words))
    (work,) = (work for work in estimate([plan], request.root).work if work.stage == "quantize_aware")
    forward = plan.sizes["teacher" if student is None else "student"].flops_per_example(mean_length(plan))
    assert work.steps == 4
    assert work.flops == pytest.approx((4 * 32 * (4 if answers is None else 3) + (answers or 0)) * forward)


def test_hours_are_hours_and_long_training_names_the_smaller_recipe() -> None:
    assert [format_duration(seconds) for seconds in (20, 61, 99 * 60, 101 * 60, 16.7 * 3600, 80 * 3600)] == [
        "less than a minute", "about 1 min", "about 99 min", "about 1.7 h", "about 17 h", "about 3 days",
    ]  # fmt: skip
    smaller_recipes = {name: smaller_recipe(name) for name in names("recipes")}
    assert {name: other for name, other in smaller_recipes.items() if other} == {
        "tinybert": "tinybert-small",
        "tinybert-general": "tinybert-small",
        "distilbert-general": "distilbert",
    }


def test_a_long_one_says_so(world: Path) -> None:
    request = request_of(world)
    forecast = estimate(plan_all(request), request.root)
    slow = replace(forecast, rates={work.key: work.flops / 60_000 for work in forecast.work}, smaller="tinybert-small")
    assert "about 17 h on this machine" in str(slow)
    assert str(slow).endswith("; recipe tinybert-small is smaller")


def test_a_plan_refuses_what_a_run_would(world: Path) -> None:
    for name, label in (("a", "x"), ("b", "y")):
        (world / f"{name}.csv").write_text("text,label\n" + "".join(f"film {i},{label}\n" for i in range(9)))
    (world / "own.yaml").write_text(
        "name: own\ntext: [text]\nlabel: label\nmetrics: [accuracy]\nfiles: {train: a.csv, dev: b.csv}\n"
    )
    with pytest.raises(CompressError, match="all 9 texts have the label 'x'"):
        compress.plan("int8", tasks=str(world / "own.yaml"), teacher=str(world / "teacher"), root=world / "runs")
    assert not (world / "runs").exists()


def test_a_plan_of_what_is_yet_to_train_imports_no_torch(world: Path) -> None:
    words = ["plan", "int8", "--task", str(world / "task.yaml"), "--teacher", str(world / "teacher")]
    assert HEAVY & imported([*words, "-o", str(world / "runs")]) == set()


def test_the_total_of_several_runs_counts_what_they_share_once(world: Path) -> None:
    """Two recipes share one teacher's fine-tuning, which each plan counts for itself. A task on the hub is not estimated."""
    (world / "one.yaml").write_text("{name: one, title: S, architecture: distilbert, layers: 1}")
    words = ["plan", "distilbert", "minilm", "--task", str(world / "task.yaml"), "--teacher", str(world / "teacher")]
    words += ["--student", str(world / "one.yaml"), "-o", str(world / "runs")]
    documents = json.loads(command(*words, "--json", cwd=world).stdout)
    steps = [document["training"]["steps"] for document in documents]
    shared = steps[0]["finetune teacher"]
    assert shared == steps[1]["finetune teacher"] > 0
    last = command(*words, cwd=world).stdout.splitlines()[-1]
    assert last.startswith("training of all 2 runs, what they share counted once: ")
    assert f" {sum(sum(each.values()) for each in steps) - shared:,} steps, " in last
    assert "training of all" not in command("plan", "distilbert", *words[3:], cwd=world).stdout
    plans = plan_all(replace(request_of(world), seeds=(0, 1)))
    known = plan_documents(plans, world / "runs")
    assert training_total(plans, known, world / "runs") is not None
    assert training_total(plans, [known[0], {**known[1], "data": None}], world / "runs") is None


def test_the_data_line_counts_pairs(world: Path) -> None:
    (plan,) = plan_all(Request(("int8",), ("toy-similarity",), teacher="bert-mini", root=world))
    assert data_line(plan.task) == "data: 5,400 train, 600 tuning pairs; regression"


def test_a_probe_gives_a_rate_and_leaves_the_generator_alone(world: Path) -> None:
    import torch

    (plan,) = plan_all(request_of(world))
    before = torch.random.get_rng_state()
    threads = torch.get_num_threads()
    rate = probe(plan.teacher.config, kind="classification", length=8, precision="fp32", threads=threads)
    assert rate > 0
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(("length", "texts"), [(8, 32), (64, 16), (200, 8)])
def test_a_probe_takes_its_fastest_step_but_the_first(
    world: Path, monkeypatch: pytest.MonkeyPatch, length: int, texts: int
) -> None:
    """For at least half a second; short texts in batches like those of a training."""
    import torch

    ends = itertools.accumulate((0, 0.01, 0, 0.2, 0, 0.1, 0, 0.3))  # (between steps, a step), alternately
    monkeypatch.setattr(throughput, "time", SimpleNamespace(perf_counter=lambda: next(ends)))
    config = {**plan_all(request_of(world))[0].teacher.config, "max_position_embeddings": 256}
    rate = probe(config, kind="classification", length=length, precision="fp32", threads=torch.get_num_threads())
    assert rate == pytest.approx(texts * model_flops(dimensions(config, classes=2), None, length=length) / 0.1)
    assert not list(ends)


def test_the_plan_tells_the_memory_of_each_stage_that_trains(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_of(monkeypatch, None)
    (world / "one.yaml").write_text("{name: one, title: S, architecture: distilbert, layers: 1}")
    request = replace(request_of(world, recipe="distilbert"), student=str(world / "one.yaml"))
    (document,) = plan_documents(plan_all(request), request.root)
    training = document["training"]
    assert training["device"] == "cpu"
    assert training["memory"].keys() == {"finetune teacher", "distill student"}
    for label, memory in training["memory"].items():
        parts = [memory[name] for name in ("weights", "gradients", "optimizer", "activations", "teacher")]
        assert memory["total"] == sum(parts)
        assert (memory["teacher"] > 0) is (label == "distill student")
        assert (memory["examples"], memory["length"]) == (32, 16)
        name = "teacher" if label == "finetune teacher" else "student"
        assert memory["optimizer"] == 8 * document["models"][name]["parameters"]
    (line,) = (line for line in document["outlook"] if line.startswith("memory:"))
    assert "16 tokens per forward pass; this machine has" in line


def test_a_gpu_that_is_known_has_an_assumed_rate_in_a_plan(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = replace(request_of(world), precision="bf16")
    plans = plan_all(request)
    for name, seconds in (("NVIDIA L4", True), ("NVIDIA unheard of", False), (None, False)):
        gpu_of(monkeypatch, name)
        forecast = estimate(plans, request.root, assume=True)
        assert (forecast.seconds is not None) is seconds
    gpu_of(monkeypatch, "NVIDIA L4")
    forecast = estimate(plans, request.root, assume=True)
    (work,) = forecast.work
    assert forecast.seconds == pytest.approx(work.flops / (0.25 * 121e12))
    assert str(forecast).endswith("less than a minute on this machine, judging by an assumed 25% of its bf16 peak")
    line = forecast.memory_line()
    assert line is not None and line.endswith("per forward pass; on NVIDIA L4")
    assert estimate(plans, request.root).seconds is None  # a run measures it
