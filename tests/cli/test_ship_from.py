"""`compress ship --from`: ships the model that a report recommends, given a report, a run or the folder of runs."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundle_making import make_run
from default_suite import slow

from compress.bundle import read_bundle
from compress.results import ModelResult, Result, StageRecord, read_result, write_result

pytestmark = pytest.mark.end_to_end

MS = {"teacher-fp32": 8.0, "student-fp32": 4.0, "student-int8": 2.0}
TUNING = {"teacher": 95.0, "student": 91.0}
INT8 = 90.0

Cli = Callable[..., Any]


def _timed(model: ModelResult) -> ModelResult:
    assert model.onnx is not None
    latency = tuple(
        row.model_copy(update={"cpu_p50": MS[model.predictions], "cpu_speedup": 2.0}) for row in model.onnx.latency
    )
    info: dict[str, Any] = {"fidelity": {"int8_tuning_score": INT8, "fp32_tuning_score": TUNING["student"]}}
    changes = {"onnx": model.onnx.model_copy(update={"latency": latency})}
    return model.model_copy(update=changes | ({"info": info} if model.precision == "int8" else {}))


def _known(result: Result) -> Result:
    """Return the result with tuning scores and CPU times."""
    trained = StageRecord(
        kind="finetune teacher", key="1" * 64, cached=False, seconds=1.0, info={"tuning_score": TUNING["teacher"]}
    )
    return result.model_copy(update={"models": tuple(map(_timed, result.models)), "stages": (trained,)})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run in `runs` and its store."""
    folder = tmp_path_factory.mktemp("finished")
    toy_run = make_run(folder)
    shutil.move(toy_run.store, folder / "runs" / ".store")
    write_result(_known(read_result(toy_run.folder)), toy_run.folder)
    return folder


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli, finished: Path) -> Path:
    """A finished run in `runs`, its store, and a report of it elsewhere."""
    (run,) = (finished / "runs").glob("bag-*")
    if not (finished / "report").exists():
        monkeypatch.chdir(finished)
        assert cli("report", run.relative_to(finished), "-o", "report").code == 0
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs" / run.name


def listing() -> list[str]:
    """Return the paths of all files in the current folder."""
    return sorted(path.as_posix() for path in Path().rglob("*"))


@pytest.mark.parametrize("source", ["report", *slow("report/result.json", "runs", "run", "runs/bag-*")])
def test_the_model_that_meets_the_limits_is_shipped(cli: Cli, world: Path, source: str) -> None:
    place = world if source == "run" else source
    done = cli("ship", "--from", place, "--max-latency-ms", 3, "--min-score", 88, "-o", "out")
    assert done.code == 0 and Path(done.out.strip()) == Path("out").resolve()
    assert done.err.startswith("With at most 3 ms") and "bag, student int8 (tuning 90.00 points" in done.err
    assert cli("verify", "out").code == 0


def test_what_the_run_noted_is_said_with_its_bundle(cli: Cli, world: Path) -> None:
    result = read_result(world)
    learnt = "teacher scores 50.0 on the tuning split, no better than a constant answer (50.0): it has learnt nothing"
    write_result(result.model_copy(update={"settings": result.settings | {"notices": [learnt]}}), world)
    done = cli("ship", world, "-o", "out")
    assert done.code == 0 and Path(done.out.strip()) == Path("out").resolve() and f"note: {learnt}\n" in done.err


def test_json_has_the_bundle_its_files_and_why_it_was_chosen(cli: Cli, world: Path) -> None:
    result = read_result(world)
    write_result(result.model_copy(update={"settings": result.settings | {"notices": ["mind the gap"]}}), world)
    options = ("--max-latency-ms", 3, "-o", "out", "--triton", "models", "--json")
    done = cli("ship", "--from", "report", *options)
    printed, out = json.loads(done.out), Path("out").resolve()
    assert done.code == 0 and done.err == f"{printed['why']}\nnote: mind the gap\n"
    sizes = {path.relative_to(out).as_posix(): path.stat().st_size for path in out.rglob("*") if path.is_file()}
    assert printed["files"] == sizes and printed["bytes"] == sum(sizes.values())
    int8 = {"file": "onnx/model_quantized.onnx", "format": "dynamic", "unpadded": None}
    assert list(printed["graphs"]) == ["fp32", "int8"] and printed["graphs"]["int8"] == int8
    assert printed["fastest"] == "int8"
    assert (printed["run"], printed["task"], printed["model"]) == (world.name, "toy-sentiment", "student")
    assert printed["bundle"] == str(out) and printed["pushed"] is None and printed["notes"] == ["mind the gap"]
    assert Path(printed["triton"]).is_dir()
    assert json.loads(cli("ship", world, "-o", "again", "--json").out)["why"] is None


def test_the_bundle_is_that_of_the_command_which_a_report_prints(
    cli: Cli, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best score within 6 ms is the fp32 student's, which is not the last model. The run is outside this folder, whose name is
    private: the command has it, the page does not."""
    place = world.parents[1] / "an own folder"
    place.mkdir()
    monkeypatch.chdir(place)
    limits = ("--max-latency-ms", 6, "--min-score", 90.5)
    said = cli("report", world, "-o", "report", *limits).out
    (command,) = (shlex.split(line)[1:] for line in said.splitlines() if line.startswith("ship:"))
    assert str(world.parent) not in Path("report/report.md").read_text("utf-8")
    assert command[:2] == ["compress", "ship"] and "--precision" in command
    assert cli(*command[1:]).code == cli("ship", "--from", world, *limits, "-o", "out").code == 0
    printed, mine = read_bundle(Path(command[-1])), read_bundle(Path("out"))
    assert list(printed.models) == list(mine.models) == ["fp32"] and printed.model == mine.model == "student"


def test_where_none_meets_the_limits_one_line_names_the_nearest(cli: Cli, world: Path) -> None:
    before = listing()
    done = cli("ship", "--from", "report", "--max-latency-ms", 1.9, "--min-score", 92, "-o", "out")
    assert done.code == 2 and done.out == "" and len(done.err.strip().splitlines()) == 1
    for words in (
        "report: With at most 1.9 ms for a text of 32 tokens, at least 92 points on the tuning split",
        "no model meets this; the nearest is bag, student int8",
        "It misses --max-latency-ms: expected at most 1.9 ms, found 2",
        "It misses --min-score: expected at least 92 points, found 90",
    ):
        assert words in done.err
    assert listing() == before


def test_a_report_whose_runs_are_gone_says_so(cli: Cli, world: Path) -> None:
    shutil.rmtree("runs")
    before = listing()
    done = cli("ship", "--from", "report", "--max-latency-ms", 3, "-o", "out")
    assert done.code == 2 and len(done.err.strip().splitlines()) == 1
    assert f"report: run {world.name}, which it recommends, is not in it, beside it or in runs" in done.err
    assert listing() == before


@pytest.mark.parametrize("source", ["elsewhere/report", *slow("elsewhere/{run}", "elsewhere/bag-*")])
def test_runs_that_are_not_in_runs_are_found_beside_and_in_what_is_given(cli: Cli, world: Path, source: str) -> None:
    shutil.move("runs", "elsewhere")
    shutil.move("report", "elsewhere/report")
    place = source.format(run=world.name)
    assert cli("ship", "--from", place, "--max-latency-ms", 3, "-o", "out").code == 0


def test_a_run_that_is_another_by_now_is_not_taken_for_the_recommended_one(cli: Cli, world: Path) -> None:
    result = read_result(world)
    smaller = result.final.model_copy(update={"file_bytes": 17})
    write_result(result.model_copy(update={"models": (*result.models[:-1], smaller)}), world)
    done = cli("ship", "--from", "report", "--max-latency-ms", 3, "-o", "out")
    assert done.code == 2 and "is another run than the one that report recommends; make the report again" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "report"], "expected at least one limit, --max-latency-ms, --max-size-mb or --min-score; found none"),
        ([], "expected a run's folder, or --from REPORT_OR_RUN with limits; found neither"),
        (["RUN", "--max-size-mb", "3"], "limits choose among the models of --from; give --from"),
        (["RUN", "--from", "report", "--max-size-mb", "3"], "leave out RUN"),
        (
            ["--from", "report", "--max-size-mb", "3", "--model", "teacher", "--precision", "fp32"],
            "leave out --model and --precision",
        ),
        (["--from", "no/such", "--max-size-mb", "3"], "no/such: no such file or directory"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(cli: Cli, world: Path, arguments: list[str], words: str) -> None:
    done = cli("ship", *(str(world) if each == "RUN" else each for each in arguments), "-o", "out")
    assert done.code == 2 and words in done.err and not Path("out").exists()


def test_a_report_of_several_tasks_is_refused_with_the_way_out(cli: Cli, world: Path) -> None:
    result = read_result(world)
    task = result.task.model_copy(update={"name": "other", "title": "Other"})
    Path("runs/other").mkdir()
    write_result(result.model_copy(update={"run": "other", "task": task}), Path("runs/other"))
    done = cli("ship", "--from", "runs", "--max-latency-ms", 3, "-o", "out")
    assert done.code == 2 and "--from takes results of one task, found" in done.err and "and Other" in done.err
    assert f"; name one run, such as {Path('runs') / world.name}" in done.err
