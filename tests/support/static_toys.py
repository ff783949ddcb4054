"""A tiny teacher, text and tasks of every kind that a static student learns or is refused, and plans of such students."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipe_runs import TASK, TEACHER

from compress.pipeline import Plan, Request, plan_all

EASY = """
name: easy
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
files: {train: train.csv, dev: dev.csv}
"""
PAIRS = """
name: tiny-pairs
text: [premise, hypothesis]
label: label
labels: [entailment, neutral, contradiction]
metrics: [accuracy]
max_length: 24
synthetic: {generator: entailment, train: 120, dev: 40}
"""
SCORES = """
name: tiny-scores
kind: regression
text: [sentence1, sentence2]
label: score
metrics: [pearson, spearman]
max_length: 24
synthetic: {generator: similarity, train: 120, dev: 40}
"""
TAGS = """
name: tiny-tags
kind: tagging
text: [tokens]
label: tags
labels: [O, B-X, I-X]
metrics: [entity_f1]
files: {train: train.conll, dev: dev.conll}
max_length: 16
"""
VECTORS = """
name: tiny-vectors
kind: embedding
text: [sentence1, sentence2]
label: score
metrics: [spearman]
max_length: 24
synthetic: {generator: similarity, train: 120, dev: 40}
"""
QUESTIONS = """
name: tiny-questions
kind: span
text: [question, context]
label: answers
metrics: [exact_match]
max_length: 24
files: {train: train.jsonl, dev: dev.jsonl}
"""
SMALL = "name: small\ntitle: Small\narchitecture: static\nhidden: 16\nintermediate: 8\ninit: {init}\n{more}"
BRIEF = ("distill.max_steps=3", "distill.batch_size=8")


def static_world(folder: Path) -> Path:
    """Write the teacher, the tasks with their files, and the text; return `folder`."""
    (folder / "tiny.yaml").write_text(TEACHER)
    tasks = {"texts": TASK, "easy": EASY, "pairs": PAIRS, "scores": SCORES, "tags": TAGS}
    for name, task in (tasks | {"vectors": VECTORS, "questions": QUESTIONS}).items():
        (folder / f"{name}.yaml").write_text(task)
    for split, numbers in (("train", range(40)), ("dev", range(40, 80))):
        (folder / f"{split}.jsonl").write_text(
            f'{{"question": "who of {split}", "context": "ada came", "answers": {{"text": ["ada"], "answer_start": [0]}}}}\n'
            * 20
        )
        (folder / f"{split}.conll").write_text("".join(f"good B-X\nfilm{n} I-X\nbad O\n\n" for n in numbers))
        rows = [f"{split} film {n} was {('bad', 'good')[n % 2]},{('negative', 'positive')[n % 2]}" for n in range(160)]
        (folder / f"{split}.csv").write_text("\n".join(["sentence,label", *rows]))
    (folder / "text.txt").write_text("the film is good .\n\n" * 100)
    return folder


def plan(world: Path, *overrides: str, recipe: str = "static", task: str = "texts", **options: Any) -> Plan:
    fields = {"teacher": str(world / "tiny.yaml"), "root": world / "runs", "precision": "fp32"} | options
    return plan_all(Request((recipe,), (str(world / f"{task}.yaml"),), overrides=overrides, **fields))[0]
