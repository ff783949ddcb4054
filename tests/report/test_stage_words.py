"""The descriptions of stages in a report's table."""

from __future__ import annotations

from collections.abc import Callable

from compress.report.page import page_of, tasks_of
from compress.report.render import markdown_report
from compress.results import Result


def test_the_least_and_the_largest_threshold_of_labels(fake: Callable[..., Result]) -> None:
    result = fake()
    info = {"epochs": 3, "thresholds": {"usual": 0.3, "rare": 0.125, "common": 0.5}}
    stages = (result.stages[0].model_copy(update={"info": info}), *result.stages[1:])
    page = markdown_report(page_of(tasks_of([result.model_copy(update={"stages": stages})])), "")
    assert "epochs 3, thresholds 0.125 (rare) to 0.5 (common)" in page
    assert "thresholds" not in markdown_report(page_of(tasks_of([result])), "")
