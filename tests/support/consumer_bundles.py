"""Bundles of each kind of task, for other libraries to open."""

from __future__ import annotations

import json
from pathlib import Path

from recipe_runs import TEACHER, compress

WORDS = ("good", "bad", "film", "the", "is", "not", "a", "dull", "start", "and", "fine", "end")
PAIR_TASK = """\
name: pairs
text: [premise, hypothesis]
label: label
labels: [entailment, neutral, contradiction]
metrics: [accuracy]
max_length: 24
synthetic: {generator: entailment, train: 400, dev: 40}
"""
WORD_TASK = """\
name: words
kind: tagging
text: [tokens]
label: tags
metrics: [entity_f1]
max_length: 24
files: {train: train.conll, dev: dev.conll}
"""
VECTOR_TASK = """\
name: vectors
kind: embedding
text: [sentence1, sentence2]
label: score
metrics: [spearman]
max_length: 24
synthetic: {generator: similarity, train: 120, dev: 40}
"""
SPAN_TASK = """\
name: spans
kind: span
text: [question, context]
label: answers
metrics: [exact_match, f1_span]
max_length: 24
files: {train: train.jsonl, dev: dev.jsonl}
"""
LABELS_TASK = """\
name: labels
kind: multilabel
text: [text]
label: labels
labels: [film, good, not]
metrics: [f1_micro]
max_length: 24
files: {train: train.jsonl, dev: dev.jsonl}
"""
RANKING_TASK = """\
name: ranks
kind: ranking
text: [query, passage]
label: relevance
metrics: [ndcg@10, mrr@10]
max_length: 24
files: {train: train.csv, dev: dev.csv}
"""
CHOICE_TASK = """\
name: choices
kind: choice
text: [context, endings]
label: label
metrics: [accuracy]
max_length: 24
files: {train: train.jsonl, dev: dev.jsonl}
"""


def shipped(world: Path, task: str, *options: str, recipe: str = "int8", steps: int | None) -> Path:
    """Ship a bundle made by the recipe, with a QDQ graph. `steps`: None if the task trains no teacher. `options`: of `compress
    run`."""
    (world / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (world / "task.yaml").write_text(task, encoding="utf-8")
    words = [
        "--task",
        "task.yaml",
        "--threads",
        "1",
        "--no-bench",
        "--json",
        "--set",
        "quantize.portable=true",
        *options,
    ]
    words += [] if "--teacher" in options else ["--teacher", "tiny.yaml"]
    for field in (f"max_steps={steps}", "epochs=40", "learning_rate=0.003") if steps else ():
        words += ["--set", f"finetune.{field}"]
    done = compress("run", recipe, *words, cwd=world)
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)
    done = compress("ship", world / "runs" / document["run"], "-o", world / "bundle", cwd=world)
    assert done.returncode == 0, done.stderr
    return world / "bundle"
