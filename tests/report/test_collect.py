"""Finding results, and refusing those that cannot be in one report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from compress.errors import CompressError
from compress.report import collect, write_report
from compress.results import MODELS, Result, write_result


def test_directories_globs_files_and_lists_give_the_same(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path
) -> None:
    written = [run_directory(fake(seed=seed)) for seed in (0, 1)]
    runs = tmp_path / "runs"
    (runs / ".store").mkdir()
    (runs / "notes.txt").write_text("not a run")
    folders = [runs / result.run for result in written]
    assert collect(folders) == written
    assert collect([folder / "result.json" for folder in folders]) == written
    assert collect([runs]) == written
    assert collect([runs / "*-seed?-*"]) == written
    assert collect([runs / "*" / "result.json"]) == written
    lines = ",".join((folder / "result.json").read_text() for folder in folders)
    (tmp_path / "results.json").write_text(f"[{lines}]")
    assert collect([tmp_path / "results.json"]) == written


def test_runs_beside_a_report_are_read_with_it(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path
) -> None:
    first = run_directory(fake())
    run_directory(fake(seed=1))
    write_report([first], tmp_path / "runs")
    assert sorted(result.seed for result in collect([tmp_path / "runs"])) == [0, 1]
    later = first.model_copy(update={"noise": ()})  # timed again since
    write_result(later, tmp_path / "runs" / first.run)
    assert later in collect([tmp_path / "runs"])
    elsewhere = first.model_copy(update={"machine": first.machine.model_copy(update={"cpu": "another"})})
    write_report([first, elsewhere], tmp_path / "runs")
    read = collect([tmp_path / "runs"])
    assert len(read) == 3 and later in read and elsewhere in read  # a run of the same name, on another machine
    write_report([first], tmp_path / "runs" / first.run / "report")
    (tmp_path / "runs" / first.run / MODELS).touch()
    assert collect([tmp_path / "runs" / first.run]) == [later]


def test_a_report_of_one_run_among_the_runs_counts_for_runs_that_are_gone(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path
) -> None:
    first, gone = run_directory(fake()), fake(seed=1)
    write_report([first], tmp_path / "runs" / "report")
    write_report([gone], tmp_path / "runs" / "report-1")
    later = first.model_copy(update={"noise": ()})  # timed again since
    write_result(later, tmp_path / "runs" / first.run)
    elsewhere = first.model_copy(update={"machine": first.machine.model_copy(update={"cpu": "another"})})
    write_report([elsewhere], tmp_path / "runs" / "report-2")
    runs = tmp_path / "runs"
    for place in (runs, runs / "*", runs / "*" / "result.json"):
        assert [result.seed for result in collect([place])] == [0, 1, 0]
        assert first not in collect([place])
    with pytest.raises(CompressError, match="hold different results"):
        collect([runs / first.run, runs / "report"])  # both are asked for


def test_a_result_found_twice_counts_once(
    fake: Callable[..., Result], run_directory: Callable[..., Result], tmp_path: Path
) -> None:
    result = run_directory(fake())
    folder = tmp_path / "runs" / result.run
    assert collect([folder, folder / "result.json", tmp_path / "runs"]) == [result]


def test_a_run_under_two_commands_that_mean_the_same_counts_once(fake: Callable[..., Result], tmp_path: Path) -> None:
    """For example if a search tries the default: `--set distill.epochs=2`."""
    first = fake(run="a")
    stages = tuple(stage.model_copy(update={"cached": True}) for stage in first.stages)
    settings = {**first.settings, "measurements": ["another key"]}
    command = f"{first.command} --set a.b=2"
    again = first.model_copy(update={"run": "b", "command": command, "stages": stages, "settings": settings})
    other = again.model_copy(update={"run": "c", "seed": 5})
    for result in (first, again, other):
        (tmp_path / result.run).mkdir()
        write_result(result, tmp_path / result.run)
    assert [result.run for result in collect([tmp_path])] == ["a", "c"]


@pytest.mark.parametrize("name", ["absent", "abs*nt"])
def test_nothing_there_is_one_line_naming_the_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(CompressError) as caught:
        collect([tmp_path / name])
    assert str(caught.value).startswith(f"{tmp_path / name}: no such file or directory")
    assert "\n" not in str(caught.value)


def test_a_folder_without_results_is_named(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=r"holds no result\.json"):
        collect([tmp_path])


def test_two_results_of_one_run_are_named_with_their_files(fake: Callable[..., Result], tmp_path: Path) -> None:
    """Unless they were timed differently, which makes two rows."""
    first = fake()
    other = first.model_copy(update={"settings": {**first.settings, "threads": 9}})
    on_two = first.model_copy(update={"settings": {**first.settings, "bench": {"runs": 30, "warmup": 5, "threads": 2}}})
    for name, result in (("a", first), ("b", other), ("c", on_two)):
        (tmp_path / name).mkdir()
        write_result(result, tmp_path / name)
    with pytest.raises(CompressError, match=rf"{tmp_path}/a/result\.json and {tmp_path}/b/result\.json"):
        collect([tmp_path / "a", tmp_path / "b"])
    assert len(collect([tmp_path / "a", tmp_path / "c"])) == 2


def test_a_run_without_its_times_counts_once_beside_itself_with_them(
    fake: Callable[..., Result], tmp_path: Path
) -> None:
    timed = fake()
    models = [model.model_copy(update={"onnx": None, "torch_eager": None}) for model in timed.models]
    settings = {**timed.settings, "bench": None}
    untimed = timed.model_copy(update={"models": tuple(models), "noise": (), "settings": settings})
    other = models[-1].model_copy(update={"headline": 50.0, "scores": {"dev": {"accuracy": 50.0}}})
    made_anew = untimed.model_copy(update={"models": (*models[:-1], other), "created": "2030-01-01"})
    for name, result in (("a", untimed), ("b", timed), ("c", made_anew)):
        (tmp_path / name).mkdir()
        write_result(result, tmp_path / name)
    assert collect([tmp_path / "a", tmp_path / "b"]) == [timed]
    with pytest.raises(
        CompressError, match=rf"{timed.run} \(made \S+\) and {timed.run} \(made 2030-01-01\) are the same"
    ):
        write_report(collect([tmp_path / "b", tmp_path / "c"]), tmp_path / "report")


def test_an_ablation_says_how_it_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "ablation.json").write_text("{}")
    with pytest.raises(CompressError, match=r"compress ablate.*ablation\.md"):
        collect([tmp_path])


def test_a_file_of_no_results_is_named(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("[]")
    with pytest.raises(CompressError, match=r"result\.json: an empty list"):
        collect([tmp_path])


def test_a_broken_file_is_named(fake: Callable[..., Result], tmp_path: Path) -> None:
    write_result(fake(), tmp_path)
    file = tmp_path / "result.json"
    file.write_text(file.read_text()[:100])
    with pytest.raises(CompressError) as caught:
        collect([tmp_path])
    assert str(caught.value).startswith(f"{file}: cannot be read as a result")


def test_a_broken_entry_of_a_list_is_named(fake: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    document = fake().model_dump(mode="json")
    del document["teacher"]
    file.write_text(json.dumps([fake().model_dump(mode="json"), document]))
    with pytest.raises(CompressError) as caught:
        collect([file])
    assert str(caught.value) == f"{file}: not a result of schema 1: 1.teacher: Field required"


def test_one_task_with_two_versions_of_its_data_is_refused(fake: Callable[..., Result], tmp_path: Path) -> None:
    one = fake()
    data = one.task.data.model_copy(update={"fingerprint": "another", "rows": {"train": 10, "tuning": 5, "dev": 872}})
    other = fake("int8", task=one.task.model_copy(update={"data": data}).name)
    other = other.model_copy(update={"task": one.task.model_copy(update={"data": data})})
    with pytest.raises(CompressError, match=r"task sst2: runs distilbert-\S+ and int8-\S+ read different data"):
        write_report([one, other], tmp_path / "report")
    assert not (tmp_path / "report" / "report.md").exists()


def test_the_same_recipe_task_and_seed_twice_is_refused(fake: Callable[..., Result], tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="runs a and b are the same recipe, task and seed 0; leave one out"):
        write_report([fake(run="a"), fake(run="b")], tmp_path)


def test_no_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="no results to report"):
        write_report([], tmp_path)
