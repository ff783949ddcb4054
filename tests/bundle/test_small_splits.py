"""Scores on a reported split where one answer counts for more than half a point."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from compress.bundle import read_bundle
from compress.bundle.document import BundleInfo
from compress.bundle.verifying.accuracy import Measured, load_measured
from compress.bundle.verifying.report import check

METRICS = {"accuracy": accuracy_score, "matthews": matthews_corrcoef}


def small(info: BundleInfo, texts: int) -> Measured:
    whole = load_measured(info, "toy-sentiment", None)
    spec = whole.data.spec.model_copy(update={"metrics": tuple(METRICS)})
    split = whole.data.splits["dev"].select(np.arange(texts))
    return Measured(info, dataclasses.replace(whole.data, spec=spec, splits={"dev": split}))


def with_scores(info: BundleInfo, answers: np.ndarray, gold: np.ndarray) -> BundleInfo:
    scores = {name: 100 * float(metric(gold, answers)) for name, metric in METRICS.items()}
    models = {name: model.model_copy(update={"scores": {"dev": scores}}) for name, model in info.models.items()}
    return info.model_copy(update={"models": models})


def is_accepted(bundle: Path, texts: int, changed: int) -> bool:
    """Whether the int8 scores pass if `changed` now correct answers were wrong when the bundle was made."""
    info = read_bundle(bundle)
    before = small(info, texts)
    answers = before._outputs(bundle, "int8", "dev", 1).argmax(axis=1)
    gold = before.data.splits["dev"].labels
    then = answers.copy()
    correct = np.flatnonzero(answers == gold)[:changed]
    then[correct] = 1 - then[correct]
    now = small(with_scores(info, then, gold), texts)
    (step,) = [step for step in now.steps(bundle, 1) if step.name == "scores int8"]
    return check(step.name, step.detail).passed


@pytest.mark.parametrize(
    ("texts", "changed", "accepted"), [(40, 0, True), (40, 1, True), (40, 2, False), (1000, 1, True), (1000, 6, False)]
)
def test_one_other_answer_is_accepted_whatever_it_is_worth(
    bundle_of: Callable[[str], Path], texts: int, changed: int, accepted: bool
) -> None:
    assert is_accepted(bundle_of("toy-sentiment"), texts, changed) is accepted


def test_a_score_that_is_not_on_record_fails(bundle_of: Callable[[str], Path]) -> None:
    bundle = bundle_of("toy-sentiment")
    info = read_bundle(bundle)
    models = {name: model.model_copy(update={"scores": {"dev": {}}}) for name, model in info.models.items()}
    now = small(info.model_copy(update={"models": models}), 40)
    (step,) = [step for step in now.steps(bundle, 1) if step.name == "scores int8"]
    result = check(step.name, step.detail)
    assert not result.passed and "(recorded none)" in result.detail


def test_what_an_answer_is_worth_is_the_most_that_a_second_choice_changes() -> None:
    """Checked on every text, for three labels, one of them rare."""
    draws = np.random.default_rng(4)
    gold = np.array([0] * 30 + [1] * 26 + [2] * 4)
    outputs = draws.normal(size=(60, 3)) + 1.5 * np.eye(3)[gold]
    spec: Any = SimpleNamespace(kind="classification", name="toy", metrics=("accuracy", "f1_macro"), positive=None)
    data: Any = SimpleNamespace(spec=spec, labels=("a", "b", "c"))
    info: Any = None

    def macro(answers: np.ndarray) -> float:
        return 100 * f1_score(gold, answers, average="macro")

    answers, second = outputs.argmax(axis=1), np.argsort(-outputs, axis=1)[:, 1]
    changes = []
    for text in range(60):
        other = answers.copy()
        other[text] = second[text]
        changes.append(abs(macro(other) - macro(answers)))
    measured_data = Measured(info, data)
    assert measured_data._largest_change("f1_macro", outputs, gold) == pytest.approx(max(changes))
    assert measured_data._largest_change("accuracy", outputs, gold) == pytest.approx(100 / 60)
