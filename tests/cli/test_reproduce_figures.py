"""Figures of a run compared with those of another seed whose answers a report has: what `compress reproduce` says elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compress.cli import reproducing
from compress.reproduction import verdicts
from compress.reproduction.figures import Figure, Interval, ReproducedRun, Reproduction
from compress.results import PER_EXAMPLE, Result, read_results

REPORTS = Path(__file__).parents[2] / "reports"


def figures(report: str, task: str, seeds: tuple[int, int], *, exact: bool) -> list[Figure]:
    """Return the figures of the last model of recipe `logits`, in fp32 and int8."""
    before, now = (run_of(report, task, seed) for seed in seeds)
    answers = REPORTS / report / PER_EXAMPLE
    pair = verdicts._Pair(before, now, answers, answers)
    return [figure for model in before.models[1:] for figure in verdicts._figures(pair, model, exact=exact)]


def run_of(report: str, task: str, seed: int) -> Result:
    results = read_results(REPORTS / report / "results.json")
    (result,) = (each for each in results if (each.recipe["name"], each.task.name, each.seed) == ("logits", task, seed))
    return result


@pytest.mark.parametrize(("report", "task"), [("base", "mrpc"), ("base", "cola"), ("base-stsb", "stsb")])
def test_the_same_answers_are_the_same(report: str, task: str) -> None:
    for exact in (True, False):
        all_figures = figures(report, task, (0, 0), exact=exact)
        assert all_figures and {(each.verdict, each.changed or 0) for each in all_figures} == {("same", 0)}


@pytest.mark.parametrize(
    ("report", "task", "names"),
    [
        ("base", "mrpc", ("headline", "accuracy", "f1")),
        ("base", "cola", ("matthews",)),
        ("base-stsb", "stsb", ("headline", "pearson", "spearman")),
    ],
)
def test_each_score_of_another_seed_has_its_interval(report: str, task: str, names: Sequence[str]) -> None:
    before, now = (run_of(report, task, seed) for seed in (0, 1))
    scores = [each for each in figures(report, task, (0, 1), exact=False) if each.split is not None]
    assert tuple(each.name for each in scores) == (*names, *names)
    for each in scores:
        assert each.interval is not None and each.now is not None and each.now != each.recorded
        assert each.interval.points == pytest.approx(each.now - each.recorded, abs=0.01)
        assert each.interval.low < each.interval.points < each.interval.high
        assert each.changed and each.examples == before.task.data.rows["dev"]
    last = [each.headline for each in (before.final, now.final)]
    assert [scores[-len(names)].recorded, scores[-len(names)].now] == last


def test_an_equal_score_by_other_answers_is_judged_by_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """One right and one wrong answer are swapped, so the accuracy is the same."""
    run = run_of("base", "mrpc", 0)
    answers = REPORTS / "base" / PER_EXAMPLE
    load = verdicts.load_answers

    def swapped(*words: Any) -> tuple[list[np.ndarray], np.ndarray]:
        (logits,), gold = load(*words)
        right = logits.argmax(-1) == gold
        one, other = (
            next(i for i in range(len(gold)) if right[i] == wanted and gold[i] == 1) for wanted in (True, False)
        )
        calls.append(0)
        return ([logits[_swap(len(gold), one, other)]] if len(calls) % 2 == 0 else [logits]), gold

    calls: list[int] = []
    monkeypatch.setattr(verdicts, "load_answers", swapped)
    pair = verdicts._Pair(run, run, answers, answers)
    figure = next(each for each in verdicts._figures(pair, run.models[1], exact=False) if each.name == "accuracy")
    assert (figure.now, figure.changed) == (figure.recorded, 2)
    assert figure.verdict != "same" and figure.interval is not None and figure.interval.points == 0


def _swap(count: int, one: int, other: int) -> np.ndarray:
    order = np.arange(count)
    order[[one, other]] = other, one
    return order


def test_by_the_same_code_another_seed_differs() -> None:
    all_figures = figures("base", "mrpc", (0, 1), exact=True)
    assert {each.verdict for each in all_figures if each.split is not None} == {"differs"}
    assert all(each.interval is None for each in all_figures)


def score(p: float, low: float) -> Figure:
    interval = Interval(points=1.0, low=low, high=2.0, p=p)
    return Figure(model="a fp32", name="accuracy", split="dev", recorded=1, now=2, verdict="differs", interval=interval)


@pytest.mark.parametrize(
    ("figure", "verdict"),
    [
        (score(0.04, 0.1), "differs"),
        (score(0.06, 0.1), "within its interval"),  # by the correction for multiple comparisons
        (score(0.01, -0.1), "within its interval"),
    ],
)
def test_an_interval_and_its_corrected_p_decide(figure: Figure, verdict: str) -> None:
    assert figure.interval is not None
    assert verdicts._judge_figure(figure, iter([figure.interval.p])).verdict == verdict


def test_scores_are_shown_with_the_digits_that_tell_them_apart() -> None:
    near = Figure(model="a fp32", name="accuracy", split="dev", recorded=90.00001, now=90.00002, verdict="differs")
    assert reproducing._values(near) == ("90.000010", "90.000020")
    nearest = near.model_copy(update={"recorded": 0.1, "now": float(np.nextafter(0.1, 1))})
    assert len(set(reproducing._values(nearest))) == 2


def test_what_holds_for_some_of_the_runs_is_told_of_these() -> None:
    fields = {"recorded": "a", "run": "a", "command": "", "recipe": "int8", "task": "t", "seed": 0, "conditions": ()}
    fields |= {"changed_settings": (), "stages": 2, "stages_from_store": 0, "figures": ()}
    runs = tuple(ReproducedRun.model_validate({**fields, "exact": exact}) for exact in (True, False, False))
    lines = list(reproducing._summary_lines(Reproduction(source="s", out="o", runs=runs)))
    assert lines[0] == "1 of 3 runs:" and "Figures must be the same." in lines and "2 of 3 runs:" in lines
