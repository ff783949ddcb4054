"""Trials that processes share, and that outlive them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import search_child
from search_child import AXES, STAGES, compute, toy_search

from compress.errors import CompressError
from compress.search.identity import IDENTITY
from compress.search.journal import JOURNAL
from compress.search.space import Axis, Point
from compress.search.study import Outcome, Search, Trial

pytestmark = pytest.mark.end_to_end

TRIALS = 16


def _whole(folder: Path) -> list[Trial]:
    return toy_search(folder).run(TRIALS, lambda number, point: compute(point))


def _distinct(trials: list[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.same_as is None]


def _start(folder: Path, seconds: float, most: int = 1_000) -> subprocess.Popen[bytes]:
    words = [str(folder), str(TRIALS), str(seconds), str(most)]
    return subprocess.Popen([sys.executable, search_child.__file__, *words])


def test_a_search_that_stops_in_each_trial_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    done: list[Point] = []

    class Stop(Exception):
        pass

    failed: set[int] = set()

    def work(number: int, point: Point) -> Outcome:
        if number not in failed:
            failed.add(number)
            raise Stop
        done.append(point)
        return compute(point)

    while True:
        try:
            trials = toy_search(tmp_path / "stopped").run(TRIALS, work)
            break
        except Stop:
            continue
    assert trials == _whole(tmp_path / "whole")
    assert len(done) == len({str(sorted(point.items())) for point in done})


def test_an_axis_of_a_stage_counts_only_where_the_recipe_has_the_stage(tmp_path: Path) -> None:
    points = [trial.point for trial in _whole(tmp_path / "s")]
    assert {"distill.epochs" in point for point in points if point["recipe"] == "a"} == {True}
    assert {"distill.epochs" in point for point in points if point["recipe"] == "b"} == {False}


def test_a_refused_trial_keeps_its_reason(tmp_path: Path) -> None:
    trials = _distinct(toy_search(tmp_path / "s").run(2, lambda number, point: Outcome(refused="too large")))
    assert [trial.refused for trial in trials] == ["too large", "too large"]


def test_a_search_is_discarded_with_the_folders_made_for_it(tmp_path: Path) -> None:
    search = toy_search(tmp_path / "out" / "s")
    search.run(2, lambda number, point: Outcome(refused="too large"))
    search.discard()
    assert list(tmp_path.iterdir()) == []


def test_files_of_others_stay_where_a_search_is_discarded(tmp_path: Path) -> None:
    notes, folder = tmp_path / "s" / "notes.txt", tmp_path / "s" / "own"
    folder.mkdir(parents=True)
    notes.write_text("mine")
    toy_search(tmp_path / "s").discard()
    assert sorted(notes.parent.iterdir()) == [notes, folder]


def test_a_link_that_leads_nowhere_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "s").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CompressError, match="expected a folder, found none"):
        toy_search(tmp_path / "s")


def test_a_search_of_an_earlier_call_is_not_discarded(tmp_path: Path) -> None:
    process = _start(tmp_path, 0, most=0)
    while not (tmp_path / "hangs-0").exists():
        time.sleep(0.1)
    process.kill()
    process.wait()
    search = toy_search(tmp_path)
    search.discard()
    assert (tmp_path / IDENTITY).exists() and (tmp_path / JOURNAL).exists()


def test_of_processes_that_share_a_search_the_last_discards_it(tmp_path: Path) -> None:
    first, second = toy_search(tmp_path / "s"), toy_search(tmp_path / "s")
    first.discard()
    assert (tmp_path / "s" / IDENTITY).exists()
    second.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_waits_for_a_search_to_be_discarded_begins_anew(tmp_path: Path) -> None:
    def begin_and_discard(_: int) -> None:
        for _ in range(50):
            toy_search(tmp_path / "s").discard()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(begin_and_discard, range(4)))
    assert list(tmp_path.iterdir()) == []


def test_a_repeated_point_uses_up_no_trial(tmp_path: Path) -> None:
    trials = _whole(tmp_path / "s")
    assert len(_distinct(trials)) == TRIALS < len(trials)
    assert len({str(trial.point) for trial in _distinct(trials)}) == TRIALS
    by_number = {trial.number: trial for trial in trials}
    for trial in trials:
        if trial.same_as is not None:
            assert (trial.point, trial.values) == (by_number[trial.same_as].point, by_number[trial.same_as].values)


def test_a_search_ends_once_every_point_was_tried(tmp_path: Path) -> None:
    trials = toy_search(tmp_path / "s").run(1000, lambda number, point: compute(point))
    assert len(_distinct(trials)) == 8 * 2 + 2


def test_a_folder_of_another_search_is_refused(tmp_path: Path) -> None:
    toy_search(tmp_path / "s")
    (tmp_path / "s-2").mkdir()
    with pytest.raises(
        CompressError, match=r"holds another search: task is 'toy' there and 'sst2' here.*--out \S+/s-3$"
    ):
        Search(tmp_path / "s", {"task": "sst2"}, AXES, STAGES, objectives=2, seed=3)


def test_a_search_that_was_renamed_leaves_its_place_to_another(tmp_path: Path) -> None:
    toy_search(tmp_path / "s").run(3, lambda number, point: compute(point))
    (tmp_path / "s").rename(tmp_path / "first")
    assert Search(tmp_path / "s", {"task": "sst2"}, AXES, STAGES, objectives=2, seed=3).finished() == []
    assert len(_distinct(toy_search(tmp_path / "first").finished())) == 3


def test_a_missing_optuna_is_named_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CompressError, match=r"needs optuna.*pip install 'optuna"):
        toy_search(tmp_path / "s")


def test_a_line_that_was_half_written_is_taken_away(tmp_path: Path) -> None:
    toy_search(tmp_path).run(3, lambda number, point: compute(point))
    journal = tmp_path / JOURNAL
    with journal.open("ab") as file:
        file.write(journal.read_bytes().splitlines()[-1][:-5])
    assert _whole(tmp_path) == _whole(tmp_path / "whole")


@pytest.mark.parametrize("values", [(1, 1.0), (True, 1), ("a", "a")])
def test_equal_values_of_an_axis_are_refused(values: tuple[object, ...]) -> None:
    with pytest.raises(CompressError, match="twice"):
        Axis("distill.epochs", values)


@pytest.mark.slow
def test_two_processes_on_one_folder_compute_no_point_twice(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    for process in [_start(folder, 0.05), _start(folder, 0.05)]:
        assert process.wait(60) == 0
    computed = (folder / "computed").read_text().splitlines()
    assert len(computed) == len(set(computed))
    assert len(computed) == len(_distinct(toy_search(folder).finished())) == TRIALS


@pytest.mark.slow
def test_a_search_killed_twice_ends_as_one_that_was_not(tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    for most in (2, 5):
        process = _start(folder, 0, most)
        deadline = time.monotonic() + 60
        while not (folder / f"hangs-{most}").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
        process.wait()
        assert len(_distinct(toy_search(folder).finished())) == most
    assert _start(folder, 0).wait(60) == 0
    assert toy_search(folder).finished() == _whole(tmp_path / "whole")
    computed = (folder / "computed").read_text().splitlines()
    assert len(computed) == len(set(computed)) == TRIALS
