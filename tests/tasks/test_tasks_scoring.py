from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from compress.errors import CheckFailed, CompressError
from compress.spec.kinds import MetricName
from compress.spec.task import Synthetic, TaskSpec
from compress.tasks import BUILTIN_TASKS, headline, score

LABELS = ("a", "b", "c")


def task(*metrics: MetricName, labels: tuple[str, ...] | None = LABELS, positive: str | None = None) -> TaskSpec:
    kind = "classification" if labels else "regression"
    origin = Synthetic(generator="sentiment")
    return TaskSpec(
        name="t", kind=kind, text=("x",), label="y", labels=labels, metrics=metrics, positive=positive, synthetic=origin
    )


def one_hot(predicted: np.ndarray, classes: int) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[predicted]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_class_metrics_agree_with_scikit_learn(classes: int, seed: int) -> None:
    from sklearn import metrics as sk

    rng = np.random.default_rng(seed)
    gold, predicted = rng.integers(0, classes, 60), rng.integers(0, classes, 60)
    names = LABELS[:classes]
    spec = task("accuracy", "f1", "f1_macro", "matthews", labels=names, positive="b")
    scores = score(spec, names, one_hot(predicted, classes), gold)
    expected = {
        "accuracy": sk.accuracy_score(gold, predicted),
        "f1": sk.f1_score(gold, predicted, labels=[1], average="macro"),
        "f1_macro": sk.f1_score(gold, predicted, average="macro"),
        "matthews": sk.matthews_corrcoef(gold, predicted),
    }
    assert scores == pytest.approx({name: 100 * value for name, value in expected.items()}, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_correlations_agree_with_scipy_ties_included(seed: int) -> None:
    from scipy import stats

    rng = np.random.default_rng(seed)
    gold = rng.integers(0, 6, 80).astype(np.float32)
    logits = np.round(gold + rng.normal(0, 2, 80), 0).astype(np.float32)
    scores = score(task("pearson", "spearman", labels=None), (), logits[:, None], gold)
    x, y = logits.astype(np.float64), gold.astype(np.float64)  # SciPy would compute in float32
    for name, function in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        assert scores[name] == pytest.approx(100 * np.asarray(function(x, y))[0], abs=1e-9)


def test_by_hand() -> None:
    gold, predicted = np.array([1, 1, 1, 0]), np.array([1, 1, 0, 1])
    scores = score(task("accuracy", "f1", labels=("n", "p")), ("n", "p"), one_hot(predicted, 2), gold)
    assert scores == pytest.approx({"accuracy": 50.0, "f1": 200 * 2 / 6})  # 2 true, 1 false positive, 1 missed
    assert headline(scores) == pytest.approx((50 + 200 * 2 / 6) / 2)


def test_f1_counts_the_last_label_unless_told() -> None:
    gold, predicted = np.array([1, 0, 0, 0]), np.array([1, 1, 0, 0])
    names = ("n", "p")
    last = score(task("f1", labels=names), names, one_hot(predicted, 2), gold)
    first = score(task("f1", labels=names, positive="n"), names, one_hot(predicted, 2), gold)
    assert last["f1"] == pytest.approx(100 * 2 / 3)
    assert first["f1"] == pytest.approx(100 * 4 / 5)


@pytest.mark.parametrize("constant", ["predicted", "gold"])
def test_a_constant_side_has_correlation_0_without_a_warning(constant: str) -> None:
    varied, flat = np.arange(5), np.ones(5)
    gold, logits = (varied, flat) if constant == "predicted" else (flat, varied)
    scores = score(task("pearson", "spearman", labels=None), (), logits.astype(np.float32) * 0.1, gold)
    assert scores == {"pearson": 0.0, "spearman": 0.0}
    classes = (gold > 0.5).astype(int) if constant == "predicted" else np.ones(5, int)
    guess = np.ones(5, int) if constant == "predicted" else (varied > 2).astype(int)
    assert score(task("matthews", labels=("n", "p")), ("n", "p"), one_hot(guess, 2), classes) == {"matthews": 0.0}


def test_f1_without_any_positive_is_0() -> None:
    nothing = np.zeros(4, int)
    assert score(task("f1", labels=("n", "p")), ("n", "p"), one_hot(nothing, 2), nothing) == {"f1": 0.0}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_finite_fail_with_their_count(bad: float) -> None:
    logits = np.zeros((10, 3), np.float32)
    logits[[2, 7], [0, 1]] = bad
    with pytest.raises(CheckFailed, match="2 of 10 texts have logits that are not finite"):
        score(task("accuracy"), LABELS, logits, np.zeros(10, int))


@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (0, 3)])
def test_logits_of_another_shape_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(CompressError, match=r"expected logits of shape \(4, 3\), found"):
        score(task("accuracy"), LABELS, np.zeros(shape), np.zeros(4, int))


def test_glue_headline_is_the_mean_of_both() -> None:
    gold = np.array([0, 1, 1, 0])
    scores = score(BUILTIN_TASKS["mrpc"], ("not_equivalent", "equivalent"), one_hot(gold, 2), gold)
    assert scores == {"accuracy": 100.0, "f1": 100.0} and headline(scores) == 100.0


def test_importing_tasks_and_scoring_need_no_heavy_package() -> None:
    code = (
        "import sys, numpy as np, compress.tasks as t\n"
        "s, f = t.resolve_task('toy-sentiment'); t.load_training(s, f, None)\n"
        "t.score(s, s.labels, np.eye(2), np.arange(2))\n"
        "t.score(t.BUILTIN_TASKS['stsb'], (), np.arange(3.), np.arange(3.))\n"
        "heavy = {'torch', 'transformers', 'datasets', 'pandas', 'pyarrow', 'scipy', 'sklearn'} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
