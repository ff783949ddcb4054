"""One command on two machines makes two runs with the same name; each keeps its own answers, log and models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from compress.errors import CompressError
from compress.report import collect, find_predictions, load_answers, own_file, write_report
from compress.report.grouping.predictions import write_answers
from compress.report.page import tasks_of
from compress.report.sections.agreement import agreement_table
from compress.report.sections.curves import curves_of
from compress.results import LOG, MODELS, PER_EXAMPLE, PREDICTIONS, Result

from .conftest import write_run

Make = Callable[..., Result]


@pytest.fixture
def namesakes(fake: Make, tmp_path: Path) -> list[Result]:
    """Write two seeds each of `here` and `there`; those of the second machine answer worse."""
    runs = []
    for place, cpu, drop in (("here", "One CPU", 0.04), ("there", "Another CPU", 0.3)):
        for seed in range(2):
            result = fake(seed=seed)
            machine = result.machine.model_copy(update={"cpu": cpu})
            run = result.model_copy(update={"machine": machine})
            runs.append(write_run(tmp_path / place / run.run, run, drop=drop))
            step = {"model": "student", "step": 1, "losses": {"hard_label": 1.0}, "tuning": 100 * drop}
            for name, content in ((LOG, json.dumps(step)), (MODELS, "{}")):
                (tmp_path / place / run.run / name).write_text(content)
    return runs


def places(tmp_path: Path) -> list[Path]:
    return [tmp_path / "here", tmp_path / "there"]


def shares(results: Sequence[Result], folders: Sequence[Path]) -> list[str]:
    """Return each model's agreement with its teacher."""
    (task,) = tasks_of(results, folders)
    table = agreement_table(task, folders)
    return [line.cells[2].text for line in table.lines] if table else []


@pytest.mark.parametrize("name", [PREDICTIONS, LOG, MODELS])
def test_each_has_the_files_of_its_own_folder(namesakes: list[Result], tmp_path: Path, name: str) -> None:
    here, there = places(tmp_path)
    assert namesakes[0].run == namesakes[2].run
    for folders in ([here, there], [there, here], [here / namesakes[0].run, there / namesakes[0].run]):
        assert own_file(namesakes[0], folders, name) == here / namesakes[0].run / name
        assert own_file(namesakes[2], folders, name) == there / namesakes[2].run / name
    assert own_file(namesakes[2], [here], name) is None


def test_each_has_its_own_agreement_and_curves(namesakes: list[Result], tmp_path: Path) -> None:
    folders = places(tmp_path)
    here, there = (shares(part, folders) for part in (namesakes[:2], namesakes[2:]))
    assert len({*here, *there}) == 4
    assert shares(namesakes, folders) == [*here, *there]
    (task,) = tasks_of(namesakes, folders)
    assert [curves.trainings[0].tuning for curves in curves_of(task, folders)] == [[(1, 4.0)], [(1, 30.0)]]


def test_the_report_gives_its_page_again_when_both_are_gone(namesakes: list[Result], tmp_path: Path) -> None:
    report, folders = tmp_path / "report", places(tmp_path)
    expected = shares(namesakes, folders)
    for place in folders:
        for run in namesakes[:2]:
            (place / run.run / LOG).unlink()  # curves need the runs
    write_report(namesakes, report, folders=folders)
    page = (report / "report.md").read_bytes()
    for folder in folders:
        shutil.rmtree(folder)
    again = collect([report])
    assert again == namesakes
    assert shares(again, [report]) == expected
    (report / "report.md").unlink()
    write_report(again, report, folders=[report])
    assert (report / "report.md").read_bytes() == page


def test_each_finds_its_answers_among_several_reports(namesakes: list[Result], tmp_path: Path) -> None:
    reports = [tmp_path / "of-here", tmp_path / "of-there"]
    for results, report in zip((namesakes[:2], namesakes[2:]), reports, strict=True):
        write_report(results, report, folders=places(tmp_path))
    for run, report in zip((namesakes[0], namesakes[2]), reports, strict=True):
        assert find_predictions(run, reports) == find_predictions(run, reports[::-1]) == report / PER_EXAMPLE
    assert find_predictions(namesakes[2], reports[:1]) is None
    # Into the first report's folder, whose copy has a run with the same name as the other machine's.
    write_report([namesakes[1], *namesakes[2:]], reports[0], folders=reports)
    file = reports[0] / PER_EXAMPLE
    for run, place in ((namesakes[1], "here"), (namesakes[2], "there"), (namesakes[3], "there")):
        names = [model.predictions for model in run.models]
        own, _ = load_answers(tmp_path / place / run.run / PREDICTIONS, run, names)
        assert find_predictions(run, reports[:1]) == file
        assert np.array_equal(load_answers(file, run, names)[0], own)


def test_a_copy_serves_no_run_that_was_made_again(namesakes: list[Result], tmp_path: Path) -> None:
    report = tmp_path / "report"
    write_report(namesakes[:2], report, folders=places(tmp_path))
    write_report([namesakes[0], namesakes[2]], report)  # only the copy is available, with answers of the first machine
    assert find_predictions(namesakes[0], [report]) == report / PER_EXAMPLE
    assert find_predictions(namesakes[2], [report]) is None
    write_report(namesakes[2:], report)
    assert not (report / PER_EXAMPLE).exists()


def test_a_run_alone_has_its_plain_name_in_the_copy(namesakes: list[Result], tmp_path: Path) -> None:
    keys = []
    for results in (namesakes[:2], namesakes):
        write_answers(results, places(tmp_path), tmp_path / PER_EXAMPLE)
        with np.load(tmp_path / PER_EXAMPLE) as arrays:
            keys.append(list(json.loads(str(arrays["index"]))["sst2/dev"]))
    assert keys[0] == [run.run for run in namesakes[:2]]
    assert [key.partition("@")[0] for key in keys[1]] == [run.run for run in namesakes]
    assert len(set(keys[1])) == 4


def test_a_result_that_cannot_be_read_is_no_run_s(namesakes: list[Result], tmp_path: Path) -> None:
    (tmp_path / "here" / namesakes[0].run / "result.json").write_text("{")
    assert find_predictions(namesakes[0], places(tmp_path)) is None


def test_the_same_run_on_one_kind_of_machine_twice_is_refused(namesakes: list[Result], tmp_path: Path) -> None:
    again = namesakes[2].model_copy(update={"machine": namesakes[0].machine})
    with pytest.raises(CompressError, match="are the same recipe, task and seed 0; leave one out"):
        tasks_of([namesakes[0], again], places(tmp_path))
