"""A training log as a kill may leave it."""

from __future__ import annotations

import json
from pathlib import Path

from compress.pipeline.plan import Listener
from compress.pipeline.training.log import Totals, TrainLog
from compress.training import StepReport


def report(step: int) -> StepReport:
    return StepReport(step, 9, 0.5, {"hard_label": 1.0}, 1e-3, examples=4, tokens=40, seconds=0.25)


def test_a_line_that_a_kill_cut_is_not_counted_and_goes_when_the_training_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with TrainLog(path, Listener()) as log:
        for step in (1, 2, 3):
            log.write(report(step))
    whole = path.read_text()
    path.write_text(whole[: whole.rindex('"examples"')] + "\xff")
    assert TrainLog(path, Listener()).totals() == Totals(tokens=80, examples=8, seconds=0.5)
    with TrainLog(path, Listener()) as log:
        log.write(report(2))  # the saved state precedes the second step
        assert log.totals() == Totals(tokens=80, examples=8, seconds=0.5)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2]


def test_without_a_line_nothing_is_counted(tmp_path: Path) -> None:
    assert TrainLog(tmp_path / "log.jsonl", Listener()).totals() == Totals(0, 0, 0)
