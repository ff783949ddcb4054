"""Bundles of each kind of task for other libraries to open."""

from __future__ import annotations

import json
from pathlib import Path

from recipe_runs import TEACHER, compress

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


def shipped(world: Path, task: str, *, steps: int | None) -> Path:
    """A bundle by the recipe `int8` as it stands, and QDQ. `steps`: None where the task trains no teacher."""
    (world / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (world / "task.yaml").write_text(task, encoding="utf-8")
    options = ["--task", "task.yaml", "--teacher", "tiny.yaml", "--threads", "1", "--no-bench", "--json"]
    for field in (f"max_steps={steps}", "epochs=40", "learning_rate=0.003") if steps else ():
        options += ["--set", f"finetune.{field}"]
    done = compress("run", "int8", *options, "--set", "quantize.portable=true", cwd=world)
    assert done.returncode == 0, done.stderr
    (document,) = json.loads(done.stdout)
    done = compress("ship", world / "runs" / document["run"], "-o", world / "bundle", cwd=world)
    assert done.returncode == 0, done.stderr
    return world / "bundle"
