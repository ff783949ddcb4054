"""Which class F1 counts: read from the result, or in results of earlier versions inferred from all scores together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import f1_score

from compress.errors import CompressError
from compress.report.grouping.recorded_scores import Scored, metric_of
from compress.results import Result

GOLD = np.array([0, 0, 0, 1, 1, 1, 1, 1])
PERFECT, WRONG_YES, WRONG_NO = GOLD, np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([1, 0, 0, 1, 1, 1, 1, 1])


def scored(run: Result, answers: np.ndarray, counted: int, recorded: str | None) -> Scored:
    """Return answers with F1 of the class `counted`, in a result that records the label `recorded`."""
    task = run.task.model_copy(update={"labels": ("no", "yes"), "metrics": ("f1",), "positive": recorded})
    points = 100 * f1_score(GOLD, answers, pos_label=counted)
    model = run.models[0].model_copy(update={"headline": points})
    return Scored(run.model_copy(update={"task": task}), model, np.eye(2)[answers], GOLD, Path("predictions.npz"))


@pytest.mark.parametrize("recorded", [None, "no"])
def test_a_perfect_model_does_not_decide_which_class_f1_counts(
    fake: Callable[..., Result], recorded: str | None
) -> None:
    seeds = [scored(fake(seed=seed), each, 0, recorded) for seed, each in enumerate((PERFECT, WRONG_YES, WRONG_NO))]
    metric = metric_of(seeds)
    for seed in seeds:
        assert metric(seed.outputs, GOLD) == pytest.approx(seed.model.headline, abs=1e-9)


def test_the_last_class_counts_where_every_class_gives_the_scores(fake: Callable[..., Result]) -> None:
    metric = metric_of([scored(fake(), PERFECT, 0, None)])
    assert metric(np.eye(2)[WRONG_YES], GOLD) == pytest.approx(100 * f1_score(GOLD, WRONG_YES, pos_label=1))


def test_a_score_of_another_class_than_the_recorded_one_is_refused(fake: Callable[..., Result]) -> None:
    with pytest.raises(CompressError, match=r"predictions\.npz: its teacher-fp32 do not give the score"):
        metric_of([scored(fake(), WRONG_YES, 1, "no")])


def test_seeds_whose_f1_counts_different_classes_are_refused(fake: Callable[..., Result]) -> None:
    with pytest.raises(CompressError, match="do not give the score"):
        metric_of([scored(fake(seed=0), WRONG_YES, 0, None), scored(fake(seed=1), WRONG_NO, 1, None)])


def test_a_class_that_is_no_label_is_refused(fake: Callable[..., Result]) -> None:
    run = fake()
    with pytest.raises(ValueError, match=r"positive.*expected one of \['negative', 'positive'\], found 'neutral'"):
        type(run.task)(**{**run.task.model_dump(), "positive": "neutral"})
