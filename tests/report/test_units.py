"""Outputs that correlate with the scores but are far from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compress.report import markdown_table
from compress.report.page import page_of, tasks_of
from compress.report.sections.units import unit_sentences
from compress.results import Result, write_result

Make = Callable[..., Result]


@pytest.fixture
def run(fake: Make, tmp_path: Path) -> Result:
    """Write a run of three models: exact, at a hundredth of the scale, and with a constant offset."""
    result = fake(task="stsb")
    gold = np.random.default_rng(0).uniform(0, 5, 200).astype(np.float32)
    names = [model.predictions for model in result.models]
    answers = [gold, gold / 100, *(gold + 0.1 for _ in names[2:])]
    (tmp_path / result.run).mkdir()
    arrays = {f"{name}/dev": answer[:, None] for name, answer in zip(names, answers, strict=True)}
    np.savez(tmp_path / result.run / "predictions.npz", allow_pickle=False, **{"gold/dev": gold}, **arrays)
    perfect = {"scores": {"dev": {"pearson": 100.0, "spearman": 100.0}}, "headline": 100.0}
    models = tuple(model.model_copy(update=perfect) for model in result.models)
    written = result.model_copy(update={"models": models})
    write_result(written, tmp_path / result.run)
    return written


def test_numbers_farther_from_the_scores_than_their_mean_are_said(run: Result, tmp_path: Path) -> None:
    tasks = tasks_of([run], [tmp_path])
    (line,) = unit_sentences(tasks, [tmp_path])
    gold = np.random.default_rng(0).uniform(0, 5, 200)
    assert "distilbert, student fp32" in line
    assert f"{0.99 * np.mean(gold**2) ** 0.5:.2f}" in line and f"{gold.std():.2f}" in line
    assert any(line in warning for warning in page_of(tasks, [tmp_path]).warnings)
    assert "root mean square" in markdown_table([run], [tmp_path])


def test_without_predictions_nothing_is_said(run: Result) -> None:
    assert unit_sentences(tasks_of([run]), []) == []
