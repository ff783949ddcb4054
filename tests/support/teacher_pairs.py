"""Several tiny teachers: a card with random weights, and encoders with their own tokenizers; requests and plans for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pretrained_toys import encoder_folder
from recipe_runs import TASK, TEACHER

from compress.pipeline import Plan, Request, plan_all

SCORES = """\
name: tiny-scores
kind: regression
text: [sentence1, sentence2]
label: score
metrics: [pearson]
max_length: 24
synthetic: {generator: similarity, train: 120, dev: 40}
"""
NARROW = "name: narrow\ntitle: narrow\narchitecture: bert\nlayers: 1\nhidden: 16\nheads: 2\ninit: random\n"
PAIR = ("tiny.yaml", "./bytes")
STEPS = ("finetune.max_steps=2", "distill.max_steps=3")


def make_world(folder: Path) -> None:
    """Write `tiny.yaml`, 4 layers; `bytes`, a RoBERTa, and `words`, a BERT, 1 layer each; tasks, and a student with random
    weights."""
    for name, text in {"tiny": TEACHER, "task": TASK, "scores": SCORES, "narrow": NARROW}.items():
        (folder / f"{name}.yaml").write_text(text)
    encoder_folder(folder / "bytes")
    encoder_folder(folder / "words", "bert", seed=6)


def request(*teachers: str, task: str = "task.yaml", recipe: Any = "logits", **fields: Any) -> Request:
    """Return a request in the world's folder; the student has random weights unless another is named."""
    settings: Any = {"precision": "fp32", "threads": 1, "overrides": STEPS, "student": "narrow.yaml", **fields}
    return Request((recipe,), (task,), teacher=teachers or None, **settings)


def plan(*teachers: str, **fields: Any) -> Plan:
    (planned,) = plan_all(request(*teachers, **fields))
    return planned
