"""The differences of an ablation against an independent reference, and the sentences on them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from ablation_rows import Rows, ablated, toy_rows

from compress.errors import CompressError
from compress.report.ablation import ablation_document, findings
from compress.report.ablation.compare import Measure
from compress.report.ablation.page import page_of
from compress.report.ablation.published import TINYBERT, published_of
from compress.report.ablation.tables import main_table
from compress.report.grouping.multiple_comparisons import Corrected
from compress.results import Result
from compress.results.fidelity import Delta

NO = "not distinguishable"


@pytest.fixture
def make_rows(fake: Callable[..., Result], run_directory: Callable[..., Result]) -> Callable[..., Rows]:
    return partial(toy_rows, fake, run_directory)


def correct(tmp_path: Path, run: Result) -> np.ndarray:
    with np.load(tmp_path / "runs" / run.run / "predictions.npz") as arrays:
        return arrays["student-fp32/dev"].argmax(axis=1) == arrays["gold/dev"]


def half_width_by_hand(gaps: list[np.ndarray]) -> float:
    """Return half the 95% interval of the mean over tasks, from each task's differences [seed, example]: the variance of three seeds'
    means over tasks, and the mean covariance over examples between two seeds; t with 2 degrees of freedom is 4.303."""
    means = np.mean([part.mean(axis=1) for part in gaps], axis=0)
    of_seeds = sum((mean - means.mean()) ** 2 for mean in means) / 2 / 3
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    shared = [np.mean([np.cov(part[a], part[b])[0, 1] / part.shape[1] for a, b in pairs]) for part in gaps]
    of_examples = max(0.0, sum(shared) / len(gaps) ** 2)
    share = of_seeds / (of_seeds + of_examples)
    return float((1.96 + (4.303 - 1.96) * 5 * share**2 / (1 + 4 * share**2)) * (of_seeds + of_examples) ** 0.5)


@pytest.mark.parametrize("tasks", [("one",), ("one", "two")])
def test_differences_are_paired_over_examples_and_seeds(
    make_rows: Callable[..., Rows], tmp_path: Path, tasks: tuple[str, ...]
) -> None:
    rows = make_rows(tasks)
    entries = {entry.label: entry for entry in ablated(rows, tmp_path).entries}
    hits = {
        label: [np.array([correct(tmp_path, run) for run in runs if run.task.name == task]) for task in tasks]
        for label, runs in rows.items()
    }
    assert entries["full"].mean.delta is None
    for label, entry in entries.items():
        assert entry.mean.scores == pytest.approx(100 * np.mean(hits[label], axis=(0, 2)))
        if delta := entry.mean.delta:
            gaps = [100 * (mine.astype(float) - full) for mine, full in zip(hits[label], hits["full"], strict=True)]
            assert delta.points == pytest.approx(np.mean(gaps))
            # covariances of 400 examples from 2,000 resamples are accurate to a few hundredths; the two examples that the
            # bootstrap adds are a third of an answer for each seed
            tolerance = 0.12 * half_width_by_hand(gaps) + 0.12
            assert (delta.high - delta.low) / 2 == pytest.approx(half_width_by_hand(gaps), abs=tolerance)
            assert delta.low < delta.points < delta.high


def test_a_change_that_may_be_chance_on_each_task_is_not_made_certain_by_their_mean(
    make_rows: Callable[..., Rows], tmp_path: Path
) -> None:
    entry = next(
        entry for entry in ablated(make_rows(("one", "two")), tmp_path).entries if entry.label == "without hidden_mse"
    )
    delta = entry.mean.delta
    assert delta and not delta.distinguishable


def test_rows_of_other_students_are_called_that(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    rows = make_rows()
    rows["student other"] = [run.model_copy(update={"student": "other"}) for run in rows.pop("without luck")]
    mixed = ablated(rows, tmp_path)
    alone = ablated({label: rows[label] for label in ("full", "student other")}, tmp_path)
    parts = ablated({label: runs for label, runs in rows.items() if label != "student other"}, tmp_path)
    titles = [(page_of(ablation).title, main_table(ablation).caption) for ablation in (mixed, alone, parts)]
    assert titles == [
        ("Mine: what each part is worth", "Mine: the full recipe, and without its parts and with other students"),
        ("Mine: what each student is worth", "Mine: the full recipe, and with other students"),
        ("Mine: what each part is worth", "Mine: the full recipe, and without its parts"),
    ]
    assert [row["student"] for row in ablation_document(alone)["rows"]] == [rows["full"][0].student, "other"]


def test_findings_say_what_moved_and_whether_as_published(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    worse, better, same, against, caution = findings(ablated(make_rows(), tmp_path))
    assert re.fullmatch(
        r"Worse than the full recipe: “without augment” \(−\d+\.\d\d\) and “without luck” \(−\d+\.\d\d\)\.", worse
    )
    assert better.startswith("Better than the full recipe: “map top” (+")
    assert same == "Not distinguishable from the full recipe: “without hidden_mse”."
    assert against == (
        "Direction against the published ablation (arXiv:1909.10351): “without augment” agrees; “map top” disagrees; "
        "“without hidden_mse” not distinguishable."
    )
    assert "another teacher, student and data" in caution


def test_published_figures_stand_beside_their_own_paper_only(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    document = ablation_document(ablated(make_rows(paper="arXiv:1910.01108"), tmp_path))
    assert document["published"] is None
    assert {row["published_difference"] for row in document["rows"]} == {None}
    assert published_of("https://arxiv.org/abs/1909.10351") is TINYBERT
    assert published_of(None) is None


def test_published_differences() -> None:
    assert TINYBERT.difference("without hidden_mse and attention_mse") == -19.3
    assert TINYBERT.difference("map top") == -4.7
    assert TINYBERT.difference("without intermediate") is None
    assert all(score < TINYBERT.full for score in TINYBERT.rows.values())


@pytest.mark.parametrize(
    ("low", "high", "p", "expected"),
    [(-3, -1, 0.01, "agrees"), (-3, 1, 0.3, NO), (1, 3, 0.01, "disagrees"), (-3, -1, 0.06, NO)],
)
def test_directions(
    make_rows: Callable[..., Rows], tmp_path: Path, low: float, high: float, p: float, expected: str
) -> None:
    """The paper reports -4.7 points for the map `top`."""
    ablation = ablated(make_rows(), tmp_path)
    delta = Delta(points=(low + high) / 2, low=low, high=high, mcnemar_p=None)
    (entry,) = (entry for entry in ablation.entries if entry.label == "map top")
    assert ablation.direction(replace(entry, mean=Measure((80.0,), delta, Corrected(p, 4)))) == expected


def test_rows_of_other_seeds_are_not_compared(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    rows = make_rows(seeds=2)
    rows["map top"] = rows["map top"][:1]
    with pytest.raises(CompressError, match="rows `full` and `map top` were not run on the same tasks and seeds"):
        ablated(rows, tmp_path)


def test_missing_and_foreign_predictions_are_named(make_rows: Callable[..., Rows], tmp_path: Path) -> None:
    rows = make_rows(seeds=1)
    file = tmp_path / "runs" / "map-top-sst2-seed0" / "predictions.npz"
    file.write_bytes((tmp_path / "runs" / "without-luck-sst2-seed0" / "predictions.npz").read_bytes())
    with pytest.raises(CompressError, match="do not give the score in the result of map-top-sst2-seed0"):
        ablated(rows, tmp_path)
    file.unlink()
    with pytest.raises(CompressError, match=r"map-top-sst2-seed0: its predictions are not at hand"):
        ablated(rows, tmp_path)
