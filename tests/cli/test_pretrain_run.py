"""`compress run bert-pretrain --corpus`, from text to the result, in a few steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recipe_runs import TEACHER

pytestmark = pytest.mark.end_to_end

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names

WORDS = ["film", "story", "people", "long", "old", "good", "bad", "city", "river", "house", "year", "made", "known"]


def test_a_teacher_from_text_is_run_and_its_perplexity_told(cli: Cli, tmp_path: Path, task_file: Path) -> None:
    rng = np.random.default_rng(3)
    documents = [" ".join(["the", *rng.choice(WORDS, 30), "."]) for _ in range(200)]
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    quick = ("pretrain.batch_size=8", "pretrain.max_steps=4", "pretrain.held_out=0.05", "finetune.max_steps=2")
    settings = [word for field in (*quick, "pretrain.max_length=32") for word in ("--set", field)]
    arguments = ("--task", task_file, "--teacher", "bert-mini", "--corpus", text, "--threads", "1", "--no-bench")
    code, printed, error = cli("run", "bert-pretrain", *arguments, *settings, "--out", tmp_path / "runs")
    assert code == 0, error
    said = re.search(r"pretrained: perplexity ([\d.]+) of the masked tokens of ([\d,]+) sequences", error)
    assert said is not None, error
    (file,) = (tmp_path / "runs").glob("bert-pretrain-*/result.json")
    assert str(file.parent) in printed
    stages = {stage["kind"]: stage for stage in json.loads(file.read_text())["stages"]}
    info = stages["pretrain pretrained"]["info"]
    assert info["steps"] == 4
    assert error.count("tokenize text") == 1  # made before the other stages, to check that there is enough text
    assert stages["tokenize text"]["cached"] is False
    assert f"{info['held_out']['perplexity']:.1f}" == said[1]
    assert f"{info['held_out']['sequences']:,}" == said[2]


def test_text_that_is_too_short_for_a_later_stage_is_told_before_the_teacher_is_trained(
    cli: Cli, tmp_path: Path, task_file: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the film is long and good , and the story of it is not bad .\n", encoding="utf-8")
    recipe = tmp_path / "two.yaml"
    recipe.write_text(
        "name: two\ntitle: two\nstudent: distil-1l\nstages:\n  - pretrain: {batch_size: 1, max_length: 8, held_out: 0}\n"
        "  - finetune: {max_steps: 1}\n  - general: {losses: [{name: hidden_cosine}], batch_size: 64}\n  - distill\n  - export\n"
    )
    arguments = ("--task", task_file, "--teacher", "bert-mini", "--corpus", text, "--threads", "1", "--no-bench")
    code, _, error = cli("run", recipe, *arguments, "--out", tmp_path / "runs")
    assert code == 2
    assert re.search(r"error: recipe two, stage general: the corpus has \d+ tokens; a batch of 64 sequences", error)
    assert "pretrain pretrained" not in error
    assert "finetune teacher" not in error


@pytest.mark.slow
@pytest.mark.parametrize("timed", [False, True])
def test_what_learnt_nothing_is_said_again_where_it_is_cached_and_a_run_without_latency_keeps_it(
    cli: Cli, tmp_path: Path, task_file: Path, timed: bool
) -> None:
    (tmp_path / "tiny.yaml").write_text(TEACHER)
    teacher = ("--teacher", tmp_path / "tiny.yaml")
    arguments = ("run", "int8", "--task", task_file, *teacher, "--threads", "1", "--out", tmp_path / "runs")
    settings = (
        "--set",
        "finetune.learning_rate=1e-12",
        "--set",
        "finetune.max_steps=1",
        "--set",
        "quantize.method=dynamic",
    )
    code, _, error = cli(*arguments, *settings, *(("--bench-runs", "1") if timed else ("--no-bench",)))
    assert code == 0, error
    assert "teacher scores" in error
    assert "(--set finetune.max_steps=N)" in " ".join(error.split())  # more epochs would change nothing
    (file,) = (tmp_path / "runs").glob("int8-*/result.json")
    before = json.loads(file.read_text())
    assert bool(before["models"][0]["onnx"]) == timed
    assert any("it has learnt nothing" in line for line in before["settings"]["notices"])
    code, _, error = cli(*arguments, *settings, "--no-bench")
    assert code == 0, error
    assert error.count("it has learnt nothing") == 1
    assert json.loads(file.read_text())["models"] == before["models"]
