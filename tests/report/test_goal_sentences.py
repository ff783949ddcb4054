"""Sentences of a page about the goal of a search."""

from __future__ import annotations

from collections.abc import Callable

from compress.report.page import page_of, tasks_of
from compress.results import Result


def test_a_searched_mix_says_whether_it_keeps_its_goal_and_on_how_many_texts(fake: Callable[..., Result]) -> None:
    """The line is in the findings of the page; a result without a search has none."""
    result = fake()
    searched = {
        "goal": {"drop": 0.5, "flips": 0.2},
        "goal_met": True,
        "reached": {"drop": 0.12, "flips": 0.2, "flipped": 2, "flips_interval": [0.0242, 0.7205]},
        "texts": {"tuning": 249, "train": 751},
    }
    *others, int8 = result.models
    models = (*others, int8.model_copy(update={"info": int8.info | searched}))
    page = page_of(tasks_of([result.model_copy(update={"models": models})]))
    (line,) = [line for line in page.tasks[0].findings if "goal" in line]
    assert line == (
        "distilbert, student int8: the search's goal of at most 0.5 points and 0.2% flips was met, with 0.12 points on 249 texts of "
        "the tuning split; 2 flips of 1,000 texts, 0.20% (95% interval 0.02 to 0.72%), counted on these and 751 more of train, "
        "which the model has seen."
    )
    assert any("median-unbiased" in line for line in page.reading)
    assert not any("goal" in line for line in page_of(tasks_of([result])).tasks[0].findings)
