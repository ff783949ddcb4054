"""Prediction files that are unreadable or do not match their run are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compress.errors import CompressError
from compress.report.page import tasks_of
from compress.results import Result, write_result


def test_broken_predictions_are_named(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path
) -> None:
    results = [run_directory(fake(seed=seed)) for seed in range(2)]
    file = tmp_path / "runs" / results[1].run / "predictions.npz"
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(CompressError, match=r"predictions\.npz: cannot be read as predictions"):
        tasks_of(results, [tmp_path / "runs"])
    np.savez(file, allow_pickle=False, other=np.zeros(3))
    with pytest.raises(CompressError, match=r"predictions\.npz: expected an array teacher-fp32/dev"):
        tasks_of(results, [tmp_path / "runs"])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("gold/dev", lambda gold: gold.astype(np.float64) * np.nan),
        ("gold/dev", lambda gold: gold + 1e300),
        ("gold/dev", lambda gold: gold + 5),
        ("gold/dev", lambda gold: gold[::2]),
        ("gold/dev", lambda gold: gold[0]),
        ("student-int8/dev", lambda logits: logits[:, :0]),
        ("student-int8/dev", lambda logits: logits[:, 0]),
        ("teacher-fp32/dev", lambda logits: logits.astype(str)),
    ],
)
def test_arrays_that_do_not_go_with_the_task_are_named(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path, name: str, change: Callable
) -> None:
    results = [run_directory(fake(seed=seed)) for seed in range(2)]
    file = tmp_path / "runs" / results[0].run / "predictions.npz"
    arrays = dict(np.load(file))
    np.savez(file, allow_pickle=False, **(arrays | {name: change(arrays[name])}))
    with pytest.raises(CompressError, match=r"predictions\.npz: .*; run the recipe again"):
        tasks_of(results, [tmp_path / "runs"])


@pytest.mark.parametrize("number", [0, 2])
def test_a_score_that_the_answers_do_not_give_is_named(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path, number: int
) -> None:
    """Of one seed too, whose difference is that on record: it would stand beside a score that it does not belong to."""
    result = run_directory(fake())
    models = list(result.models)
    points = models[number].headline - 5
    models[number] = models[number].model_copy(update={"scores": {"dev": {"accuracy": points}}, "headline": points})
    altered = result.model_copy(update={"models": tuple(models)})
    folder = tmp_path / "runs"
    tasks_of([result], [folder])
    write_result(altered, folder / altered.run)
    with pytest.raises(CompressError, match=rf"its {models[number].predictions} do not give the score .*{points:.2f}"):
        tasks_of([altered], [folder])
    tasks_of([altered], [])  # without answers it cannot be known
