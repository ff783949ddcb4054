"""A task whose F1 counts another class than the last: the result records it, and the report over seeds uses it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from compress.pipeline import Request, run_all
from compress.report.page import tasks_of
from compress.report.predictions import find_predictions, load_answers
from compress.results import Result
from compress.spec.task import Synthetic
from compress.tasks.synthetic import generate

TEACHER = """\
name: tiny
title: BERT, 2 layers × 32, random weights
licence: Apache-2.0
random: {layers: 2, hidden: 32, heads: 2, intermediate: 64, vocabulary: 300, max_positions: 32}
finetune: {learning_rate: 3.0e-3, max_steps: 12, batch_size: 8}
"""
TASK = """\
name: own
text: [sentence]
label: label
labels: [negative, positive]
positive: {positive}
metrics: [f1]
max_length: 16
tuning_fraction: 0.3
files: {{train: train.csv, dev: dev.csv}}
"""


def results(folder: Path, positive: str) -> list[Result]:
    (folder / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (folder / "task.yaml").write_text(TASK.format(positive=positive), encoding="utf-8")
    for name, rows in generate(Synthetic(generator="sentiment", train=120, dev=40)).items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("sentence", "label"), *rows])
    task, teacher = str(folder / "task.yaml"), str(folder / "tiny.yaml")
    request = Request(("int8",), (task,), teacher=teacher, seeds=(0, 1), root=folder / "runs", overrides=("quantize.method=dynamic",),
                      precision="fp32", threads=1, bench=None)  # fmt: skip
    return run_all(request)


@pytest.mark.parametrize("positive", ["negative", "null"])
def test_scores_and_differences_are_those_of_the_recorded_class(tmp_path: Path, positive: str) -> None:
    runs = results(tmp_path, positive)
    counted = 0 if positive == "negative" else 1
    scores = []
    for run in runs:
        assert run.task.positive == run.task.labels[counted]
        file = find_predictions(run, [tmp_path / "runs"])
        assert file is not None
        answers, gold = load_answers(file, run, [model.predictions for model in run.models])
        scores.append([100 * f1_score(gold, each.argmax(1), pos_label=counted) for each in answers])
        assert [model.headline for model in run.models] == pytest.approx(scores[-1], abs=1e-6)
    (task,) = tasks_of(runs, [tmp_path / "runs"])
    delta = task.rows[-1].delta
    means = np.mean(scores, axis=0)
    assert delta is not None and delta.points == pytest.approx(means[1] - means[0], abs=0.01)
