"""Run the rows of an ablation: only those that change something, and none before all are planned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from listeners import Notices

from compress.catalog import load_recipe
from compress.errors import CompressError
from compress.pipeline import Request
from compress.pipeline.ablation import run as ablation
from compress.pipeline.ablation.rows import Row, choose, rows
from compress.pipeline.ablation.run import run_rows
from compress.spec.recipe import Recipe

TEACHER = """\
name: tiny
title: BERT, 4 layers × 16, random weights
licence: Apache-2.0
random: {layers: 4, hidden: 16, heads: 2, intermediate: 32, vocabulary: 300, max_positions: 32}
"""
TASK = """\
name: tiny-task
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
synthetic: {generator: sentiment, train: 120, dev: 40}
"""
REGRESSION = """\
name: pairs
text: [sentence1, sentence2]
label: score
kind: regression
metrics: [pearson]
max_length: 24
synthetic: {generator: similarity, train: 120, dev: 40}
"""


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    (tmp_path / "tiny.yaml").write_text(TEACHER, encoding="utf-8")
    (tmp_path / "task.yaml").write_text(TASK, encoding="utf-8")
    (tmp_path / "text.txt").write_text("some words\n", encoding="utf-8")
    return Request(
        recipes=("ignored",),
        tasks=(str(tmp_path / "task.yaml"),),
        teacher=str(tmp_path / "tiny.yaml"),
        corpus=(str(tmp_path / "text.txt"),),
        root=tmp_path / "runs",
        seeds=(0, 1),
        overrides=("of.the=rows",),
    )


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """Record the requests instead of running them."""
    requests: list[Request] = []
    monkeypatch.setattr(ablation, "run_all", lambda request, listener: requests.append(request) or [])
    return requests


def test_rows_run_one_after_the_other_without_latency(request_: Request, ran: list[Request]) -> None:
    notices = Notices()
    selection = choose(rows("tinybert", corpus=True), ["without general", "without augment", "map top"])
    results = run_rows(selection, request_, notices)
    assert [*results] == ["full", "without augment", "map top"]  # random weights teach nothing on plain text
    assert notices.notices == [
        "without general: changes nothing here, and is left out",
        "row 1 of 3: full",
        "row 2 of 3: without augment",
        "row 3 of 3: map top",
    ]
    names = [recipe.name for request in ran for recipe in request.recipes if isinstance(recipe, Recipe)]
    assert names == [row.recipe.name for row in selection if row.label in results]
    assert all((request.bench, request.overrides, request.seeds) == (None, (), (0, 1)) for request in ran)


def test_gold_scores_in_place_of_soft_targets_are_no_row_for_regression(
    request_: Request, ran: list[Request], tmp_path: Path
) -> None:
    """For regression the soft cross-entropy already is the squared error to the gold score."""
    (tmp_path / "pairs.yaml").write_text(REGRESSION, encoding="utf-8")
    pairs = replace(request_, tasks=(str(tmp_path / "pairs.yaml"),))
    labels = ["without augment", "without soft_cross_entropy", "without intermediate and soft_cross_entropy"]
    selection, notices = choose(rows("tinybert", corpus=True), labels), Notices()
    assert [*run_rows(selection, pairs, notices)] == ["full", labels[0], labels[2]]
    assert notices.notices[0] == "without soft_cross_entropy: changes nothing here, and is left out"

    selection, notices = choose(selection, labels[1:2]), Notices()
    both = replace(pairs, tasks=(*request_.tasks, *pairs.tasks))
    assert [*run_rows(selection, both, notices)] == ["full", labels[1]]
    assert notices.notices[0] == "without soft_cross_entropy: changes nothing on pairs"

    heavier = rows("tinybert", ["prediction.losses=[{name: soft_cross_entropy, weight: 2.0}]"], corpus=True)
    assert [*run_rows(choose(heavier, labels[1:2]), pairs)] == ["full", labels[1]]


def test_rows_that_change_nothing_are_no_ablation(request_: Request, ran: list[Request]) -> None:
    with pytest.raises(CompressError, match="none of these changes anything here"):
        run_rows(choose(rows("tinybert", corpus=True), ["without general"]), request_)
    assert not ran


def test_a_row_that_cannot_be_run_is_found_before_the_first_is(request_: Request, ran: list[Request]) -> None:
    full, *others = rows("tinybert", corpus=True)
    broken = Row("broken", load_recipe("tinybert", ["name=broken", "intermediate.max_length=33"]))
    with pytest.raises(CompressError, match="max_length is 33 tokens"):
        run_rows([full, *others, broken], request_)
    assert not ran
