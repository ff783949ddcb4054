"""Labels in pictures: none cut, shortened, overlapping, or undefined, whichever font a browser has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from default_suite import keeping

from compress.report import collect, render
from compress.report.ablation import ablation_of, write_ablation
from compress.report.page import tasks_of
from compress.results import Result

from ..support.svg_labels import faults

REPORTS = Path(__file__).parents[2] / "reports"
COMMITTED = sorted(path.parent.name for kind in ("result.json", "results.json") for path in REPORTS.glob(f"*/{kind}"))


def test_faults_are_seen() -> None:
    """A cut, a shortened, an undefined label, and two overlapping ones; labels side by side are no fault."""

    def picture(*texts: tuple[float, str]) -> str:
        words = "".join(f'<text transform="translate({x},50)" font-size="10px">{text}</text>' for x, text in texts)
        return f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100">{words}</svg>'

    assert faults(picture((10, "one"), (60, "two"))) == []
    assert len(faults(picture((10, "sixteen letters."), (60, "two")))) == 1
    assert len(faults(picture((180, "beyond")))) == 1
    assert len(faults(picture((10, "shor…")))) == 1
    assert len(faults(picture((10, "one")).replace("<text", '<g aria-label="x: undefined"/><text'))) == 1


@pytest.mark.parametrize("name", keeping(COMMITTED, ("albert-forms", "conll2003", "glue-minilm", "pruned-half")))
def test_plots_of_the_committed_results(name: str) -> None:
    tasks = tasks_of(collect([REPORTS / name]))
    for task in tasks:
        assert faults(render.plot([task])) == []
    assert faults(render.plot(tasks)) == []


def test_long_names_have_their_room(fake: Callable[..., Result]) -> None:
    long = "a recipe whose name is longer than anyone would type, without general, distill.steps=12"
    data = fake().task.data.model_copy(update={"notes": (f"train is a subset, and {long}",)})
    task = fake().task.model_copy(update={"title": long, "data": data})
    changed = fake().model_copy(update={"recipe": {"name": long, "stages": [{"distill": {}}]}, "task": task})
    assert faults(render.plot(tasks_of([changed]))) == []


def test_times_that_span_five_decades(fake: Callable[..., Result]) -> None:
    result = fake()
    slow = result.models[0].onnx
    assert slow is not None
    latency = tuple(each.model_copy(update={"p50": each.p50 * 1e5}) for each in slow.latency)
    onnx = slow.model_copy(update={"latency": latency})
    models = (result.models[0].model_copy(update={"onnx": onnx}), *result.models[1:])
    assert faults(render.plot(tasks_of([result.model_copy(update={"models": models})]))) == []


def test_sensitivity_of_a_searched_model() -> None:
    tasks = tasks_of(collect([REPORTS / "minilm-int8-auto"]))
    assert faults(render.sensitivity(tasks)) == []


@pytest.mark.parametrize("spread", [0.02, 0.3, 0.9])
def test_rows_of_an_ablation(
    spread: float, fake: Callable[..., Result], run_directory: Callable[..., Any], tmp_path: Path
) -> None:
    rows = {}
    for label, drop in {"full": 0.0, "student albert-6x384-of-another-start": spread, "map top": -0.05}.items():
        run = fake(run=label.replace(" ", "-"))
        rows[label] = [run_directory(run.model_copy(update={"models": run.models[:2]}), drop=drop)]
    ablation = ablation_of(rows, title="Mine", command="compress ablate tinybert", folders=[tmp_path / "runs"])
    written = {path.name: path for path in write_ablation(ablation, tmp_path / "report")}
    assert faults(written["ablation.svg"].read_text(encoding="utf-8")) == []
