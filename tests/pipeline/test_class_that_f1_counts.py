"""A task whose F1 counts another class than the last: the result records it, and the report over seeds uses it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from compress.pipeline import Request, run_all
from compress.report.grouping.predictions import find_predictions, load_answers
from compress.report.page import tasks_of
from compress.results import Result
from compress.spec.task import Synthetic
from compress.tasks.synthetic import generate

pytestmark = pytest.mark.end_to_end

TEACHER = """\
name: tiny
title: BERT, 2 layers × 32, random weights
licence: Apache-2.0
random: {layers: 2, hidden: 32, heads: 2, intermediate: 64, vocabulary: 300, max_positions: 32}
finetune: {learning_rate: 3.0e-3, epochs: 10, batch_size: 8, evaluate_every: 5}
"""
TASK = """\
name: own
text: [sentence]
label: label
labels: [negative, positive]
positive: negative
metrics: [f1]
max_length: 16
tuning_fraction: 0.3
files: {train: train.csv, dev: dev.csv}
"""
RECIPE = """\
name: shallow
title: Shallow
description: A student of one layer, trained little.
teacher: tiny
student: {student}
stages:
  - finetune
  - distill: {{max_steps: 6, batch_size: 8, losses: [{{name: soft_target}}]}}
  - export
"""


def results(folder: Path) -> list[Result]:
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (folder / "one.yaml").write_text("name: one\ntitle: One\nlayers: 1\n", encoding="utf-8")
    (folder / "shallow.yaml").write_text(RECIPE.format(student=folder / "one.yaml"), encoding="utf-8")
    (folder / "task.yaml").write_text(TASK, encoding="utf-8")
    for name, rows in generate(Synthetic(generator="sentiment", train=120, dev=40)).items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("sentence", "label"), *rows])
    task, teacher = str(folder / "task.yaml"), str(folder / "tiny.yaml")
    recipe = str(folder / "shallow.yaml")
    options: dict[str, Any] = {"precision": "fp32", "threads": 1, "bench": None}
    request = Request((recipe,), (task,), teacher=teacher, seeds=(0, 1), root=folder / "runs", **options)
    return run_all(request)


def test_scores_and_differences_are_those_of_the_recorded_class(tmp_path: Path) -> None:
    runs, scores = results(tmp_path), []
    for run in runs:
        assert run.task.positive == run.task.labels[0]
        file = find_predictions(run, [tmp_path / "runs"])
        assert file is not None
        answers, gold = load_answers(file, run, [model.predictions for model in run.models])
        scores.append([100 * f1_score(gold, each.argmax(1), pos_label=0) for each in answers])
        assert [model.headline for model in run.models] == pytest.approx(scores[-1], abs=1e-6)
    (task,) = tasks_of(runs, [tmp_path / "runs"])
    delta = task.rows[-1].delta
    means = np.mean(scores, axis=0)
    assert 0 < means[0] < 100 and means[0] != means[1]
    assert delta is not None and delta.points == pytest.approx(means[1] - means[0], abs=0.01)
