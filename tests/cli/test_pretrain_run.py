"""`compress run bert-pretrain --corpus`, from text to the result, in a few steps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names

WORDS = ["film", "story", "people", "long", "old", "good", "bad", "city", "river", "house", "year", "made", "known"]


def test_a_teacher_from_text_is_run_and_its_perplexity_told(cli: Cli, tmp_path: Path, task_file: Path) -> None:
    rng = np.random.default_rng(3)
    documents = [" ".join(["the", *rng.choice(WORDS, 30), "."]) for _ in range(200)]
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    quick = ("pretrain.batch_size=8", "pretrain.max_steps=4", "pretrain.held_out=0.05", "finetune.max_steps=2")
    settings = [word for field in (*quick, "pretrain.max_length=32") for word in ("--set", field)]
    given = ("--task", task_file, "--teacher", "bert-mini", "--corpus", text, "--threads", "1", "--no-bench")
    code, printed, error = cli("run", "bert-pretrain", *given, *settings, "--out", tmp_path / "runs")
    assert code == 0, error
    said = re.search(r"pretrained: perplexity ([\d.]+) of the hidden tokens of ([\d,]+) sequences", error)
    assert said is not None, error
    (file,) = (tmp_path / "runs").glob("bert-pretrain-*/result.json")
    assert str(file.parent) in printed
    stages = {stage["kind"]: stage for stage in json.loads(file.read_text())["stages"]}
    info = stages["pretrain pretrained"]["info"]
    assert info["steps"] == 4
    assert f"{info['held_out']['perplexity']:.1f}" == said[1]
    assert f"{info['held_out']['sequences']:,}" == said[2]
