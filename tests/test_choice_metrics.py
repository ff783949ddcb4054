"""Accuracy over questions: ties, intervals, the constant baseline, and stored outputs, against plain references."""

from __future__ import annotations

import numpy as np
import pytest

from compress.errors import CompressError
from compress.metrics import ChoiceHeadline
from compress.metrics.choices import shares
from compress.runtime.passages import NO_SCORE
from compress.tasks import TASK_KINDS

ACCURACY = ChoiceHeadline(("accuracy",))
OUTPUTS = np.array([[1.0, 2.0, 0.0], [3.0, 3.0, NO_SCORE], [5.0, 5.0, 5.0], [0.0, -1.0, NO_SCORE]])
GOLD = np.array([1, 0, 2, 1])


def test_a_tie_counts_a_share() -> None:
    assert shares(OUTPUTS, GOLD).tolist() == [1, 1 / 2, 1 / 3, 0]
    assert ACCURACY(OUTPUTS, GOLD) == pytest.approx(100 * (1 + 1 / 2 + 1 / 3) / 4)
    assert ACCURACY(OUTPUTS, np.tile(GOLD[:, None], (1, 3)).astype(np.float32)) == ACCURACY(OUTPUTS, GOLD)


def test_without_ties_it_is_the_share_of_right_answers() -> None:
    rng = np.random.default_rng(0)
    outputs, gold = rng.normal(size=(50, 4)), rng.integers(0, 4, 50)
    right = outputs.argmax(1) == gold
    assert ACCURACY(outputs, gold) == pytest.approx(100 * right.mean())
    correct = ACCURACY.correct(outputs, gold)
    assert correct is not None and correct.tolist() == right.tolist()
    assert ACCURACY.correct(OUTPUTS, GOLD) is None


def test_resamples_draw_questions() -> None:
    rng = np.random.default_rng(1)
    outputs, gold = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    drawn = ACCURACY.resampled([(outputs, rng.normal(size=(200, 3)))], gold, 2000, np.random.default_rng(0))
    share = ACCURACY(outputs, gold) / 100
    assert drawn.shape == (2, 2000)
    assert drawn[0].mean() == pytest.approx(100 * share, abs=0.5)
    assert drawn[0].std() == pytest.approx(100 * np.sqrt(share * (1 - share) / 200), rel=0.1)


def test_models_that_agree_are_not_told_apart() -> None:
    outputs = np.eye(3)[np.zeros(20, int)]
    drawn = ACCURACY.resampled([(outputs, outputs)], np.zeros(20, int), 500, np.random.default_rng(0))
    assert (drawn[0] - drawn[1]).min() < 0 < (drawn[0] - drawn[1]).max()


def test_what_is_refused() -> None:
    with pytest.raises(CompressError, match="predictions for each of the 4 examples"):
        ACCURACY(OUTPUTS[:2], GOLD)
    with pytest.raises(CompressError, match="expected metrics of one kind"):
        ChoiceHeadline(("f1",))


def test_the_constant_answers_the_usual_place() -> None:
    kind = TASK_KINDS["choice"]
    labels = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [1, 2], [0, 2]])
    assert kind.labels.gold(labels, ()).tolist() == [1, 1, 0]
    outputs = kind.constant_baseline.outputs(labels, (), np.array([1, 0, 1, 3]))
    assert outputs.argmax(1).tolist() == [1] * 4 and outputs.shape == (4, 4)


def test_confidence_and_divergence_are_of_a_questions_endings() -> None:
    kind = TASK_KINDS["choice"]
    assert kind.decisions is not None
    np.testing.assert_allclose(kind.decisions.confidence(OUTPUTS[[1, 2]]), [1 / 2, 1 / 3])
    assert kind.fidelity.divergence(OUTPUTS, OUTPUTS) == pytest.approx(0, abs=1e-12)
    first, second = np.array([[1.0, 0.0, NO_SCORE]]), np.array([[0.0, 1.0, NO_SCORE]])
    shared = np.exp([1.0, 0.0]) / np.exp([1.0, 0.0]).sum()
    assert kind.fidelity.divergence(first, second) == pytest.approx(
        float((shared * np.log(shared / shared[::-1])).sum())
    )
    assert kind.logits(OUTPUTS).shape == (10,) and kind.output_count(()) is None
    assert kind.labels.format(1, ()) == "ending 1"


def test_the_mean_of_teachers_is_of_probabilities() -> None:
    ensemble = TASK_KINDS["choice"].ensemble
    assert ensemble is not None
    first, second = np.array([[1.0, 0.0, NO_SCORE]]), np.array([[0.0, 3.0, NO_SCORE]])
    probabilities = np.exp(ensemble.mean([first, second]))
    each = [np.exp(one[:, :2]) / np.exp(one[:, :2]).sum() for one in (first, second)]
    np.testing.assert_allclose(probabilities, np.append(np.mean(each, axis=0), [[0]], axis=1), atol=1e-12)
