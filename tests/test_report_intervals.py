"""benchmarks/intervals.py, which recomputes the intervals of committed reports from their records."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from metric_references import headline_of

from compress.errors import CompressError
from compress.metrics import ClassHeadline
from compress.report.ablation.plot import describe, picture
from compress.stats.significance import paired_bootstrap_seeds

REPORTS = Path(__file__).parents[1] / "reports"
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
AGAIN = ("albert-starts", "albert-starts-sst2", "tinybert-small-intermediate", "tinybert-small-ablation")


@pytest.fixture
def intervals(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("intervals")


@pytest.mark.parametrize("name", AGAIN)
def test_pages_and_picture_are_those_of_the_record(intervals: Any, name: str) -> None:
    ablation = intervals.ablation_on_record(json.loads((REPORTS / name / "ablation.json").read_text(encoding="utf-8")))
    svg = (REPORTS / name / "ablation.svg").read_text(encoding="utf-8").rstrip("\n")
    assert picture(ablation) == svg
    assert svg in (REPORTS / name / "ablation.html").read_text(encoding="utf-8")
    for page in ("ablation.md", "ablation.html"):
        text = (REPORTS / name / page).read_text(encoding="utf-8")
        assert describe(ablation) in text and ("on record" in text)


def test_what_was_made_again_is_not_made_again(intervals: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(REPORTS / AGAIN[0], tmp_path / "copy")
    with pytest.raises(CompressError, match="made again before"):
        intervals.of_ablation(folder)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_derived_from_the_record_are_about_those_of_the_predictions(intervals: Any, seed: int) -> None:
    """The older bootstrap drew examples and two of three seeds."""
    rng, examples = np.random.default_rng(seed), 4000
    gold = np.ones(examples, dtype=np.int64)
    hard = rng.random(examples)
    right = hard < np.array([0.90, 0.91, 0.89, 0.86, 0.88, 0.83])[:, None] + 0.05 * rng.standard_normal((6, examples))
    logits = np.eye(2, dtype=np.float32)[right.astype(int)]
    pairs = list(zip(logits[:3], logits[3:], strict=True))
    gaps = 100.0 * (right[3:].astype(float) - right[:3])
    older = [gaps[np.ix_(rng.integers(3, size=2), rng.integers(examples, size=examples))].mean() for _ in range(2000)]
    low, high = np.quantile(older, [0.025, 0.975])
    measure: dict[str, Any] = {
        "scores": list(100 * right[3:].mean(axis=1)),
        "difference": {"points": gaps.mean(), "low": low, "high": high},
    }
    full = {"scores": list(100 * right[:3].mean(axis=1))}
    row = {"tasks": {"sst2": measure}, "mean": {**measure, "difference": dict(measure["difference"])}}
    intervals._over_seeds({"tasks": {"sst2": full}, "mean": full}, row, {}, "")
    _, low, high = paired_bootstrap_seeds(ClassHeadline(("accuracy",)), pairs, gold)
    derived = measure["difference"]["high"] - measure["difference"]["low"]
    assert derived == pytest.approx(high - low, rel=0.2)
    assert row["mean"]["difference"] == pytest.approx(measure["difference"])


def test_equal_answers_have_the_score_on_record(intervals: Any) -> None:
    headline = 50 * (330 / 408 + 2 * 240 / (480 + 78))
    base, other, gold = intervals.equal_answers(("accuracy", "f1"), 408, headline)
    assert ClassHeadline(("accuracy", "f1"))(base, gold) == pytest.approx(headline)
    assert np.array_equal(base, other) and len(gold) == 408
    with pytest.raises(CompressError, match="expected a mean of accuracy and F1"):
        intervals.equal_answers(("matthews",), 408, headline)


@pytest.mark.parametrize("metrics", [("accuracy",), ("accuracy", "f1")])
def test_flips_and_scores_give_all_answers(intervals: Any, metrics: tuple[str, ...]) -> None:
    rng, labels = np.random.default_rng(0), ("no", "yes")
    gold = rng.integers(2, size=500)
    fp32 = np.where(rng.random(500) < 0.15, 1 - gold, gold)
    int8 = fp32.copy()
    int8[:7] = 1 - int8[:7]
    flipped = [
        SimpleNamespace(
            fp32=labels[fp32[row]], int8=labels[int8[row]], gold="fp32" if gold[row] == fp32[row] else "int8"
        )
        for row in range(7)
    ]
    outputs = [np.eye(2, dtype=np.float32)[each] for each in (fp32, int8)]
    scores = {name: headline_of(name)(outputs[0], gold) for name in metrics}
    run: Any = SimpleNamespace(task=SimpleNamespace(labels=labels))
    model: Any = SimpleNamespace(
        fidelity=SimpleNamespace(flipped=flipped, examples=500, split="dev"), predictions="int8"
    )
    reference: Any = SimpleNamespace(scores={"dev": scores})
    base, other, again = intervals.answers(run, model, reference)
    for output, own in zip((base, other), outputs, strict=True):
        assert headline_of(*metrics)(output, again) == pytest.approx(headline_of(*metrics)(own, gold))
    assert int((base.argmax(1) != other.argmax(1)).sum()) == 7 and len(again) == 500
