"""Check whether scores have the right scale, which correlations do not measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..grouping.groups import Row, Task
from ..grouping.predictions import find_predictions, load_answers
from ..text import numbers


def unit_sentences(tasks: Sequence[Task], folders: Sequence[Path]) -> list[str]:
    """Return a sentence for each regression model whose answers are farther from the scores than their mean is (root mean square over all
    seeds). Skips models without predictions in `folders`."""
    return [text for task in tasks if task.first.task.kind == "regression" for text in _of_task(task, folders)]


def _of_task(task: Task, folders: Sequence[Path]) -> Iterator[str]:
    for row in (row for row in task.rows if not row.eager):
        errors = _errors(task, row, folders)
        if errors is not None and errors[0] > errors[1]:
            mine, constant = map(numbers.significant, errors)
            title = task.first.task.marked_title
            yield (
                f"{title}: {row.label}: its numbers are off by {mine} (root mean square), more than the mean of the scores "
                f"would be, {constant}; correlations do not see that: use its order alone, or train it longer"
            )


def _errors(task: Task, row: Row, folders: Sequence[Path]) -> tuple[float, float] | None:
    """Return the root mean square errors of the model, and of the scores' mean; None if predictions are missing."""
    squares, variances = [], []
    for run, model in task.models_of(row):
        file = find_predictions(run, folders)
        if file is None:
            return None
        (answers,), gold = load_answers(file, run, [model.predictions])
        squares.append(np.mean((answers.reshape(len(gold)) - gold) ** 2))
        variances.append(np.var(gold))
    return float(np.mean(squares) ** 0.5), float(np.mean(variances) ** 0.5)
