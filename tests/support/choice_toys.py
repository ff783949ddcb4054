"""A task that only some learning rates can learn, and requests that choose among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from worlds import encoder_world

from compress.pipeline import Listener, Plan, Request, plan_all
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


def choice_world(folder: Path, tiny_checkpoint: Callable[[str], Path], tokenizer: Tokenizer) -> Path:
    """Write two teachers without a head, a student, and a task that is learnt within a few steps if the learning rate is high
    enough."""
    encoder_world(folder, tiny_checkpoint("bert"), tokenizer, text="a film\n")
    (folder / "learner.yaml").write_text(LEARNER)
    (folder / "half.yaml").write_text("name: half\ntitle: Half\nlayers: 1\n")
    (folder / "task.yaml").write_text(TASK)
    for split, count in (("train", 200), ("dev", 40)):
        lines = [f"the {split} film {i} is {('bad', 'good')[i % 2]},{i % 2}\n" for i in range(count)]
        (folder / f"{split}.csv").write_text("text,label\n" + "".join(lines))
    return folder


def request(
    world: Path, *overrides: str, recipe: str | Recipe = "int8", teacher: str = "teacher", student: str | None = None
) -> Request:
    return Request(
        (recipe,), (str(world / "task.yaml"),), teacher=str(world / teacher), root=world / "runs", precision="fp32",
        threads=1, bench=None, overrides=overrides, student=student and str(world / student),
    )  # fmt: skip


def plan(world: Path, *overrides: str, **options: Any) -> Plan:
    return plan_all(request(world, *overrides, **options))[0]


class Recorder(Listener):
    def __init__(self) -> None:
        self.stages: list[str] = []
        self.notes: list[str] = []

    def stage(self, label: str, cached: bool) -> None:
        self.stages.append(f"{'cached' if cached else 'run'} {label}")

    def notice(self, line: str) -> None:
        self.notes.append(line)
