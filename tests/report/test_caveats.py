"""Notes in a report about tasks at the level of guessing, unreliable times, and missing predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from guessing_teachers import guessing, on_mrpc

from compress.errors import CompressError
from compress.model_choice import Limits
from compress.report import markdown_table, summary_table, write_report
from compress.report.page import page_of, tasks_of
from compress.report.recommendation import recommend
from compress.report.sections.overview import _longer, guess_sentences, over_tasks
from compress.results import ModelResult, Result

ResultMaker = Callable[..., Result]


def test_a_task_that_the_teacher_only_guesses_does_not_count_in_means(
    fake: ResultMaker, run_directory: ResultMaker, tmp_path: Path
) -> None:
    usual = run_directory(fake())
    guess = guessing(on_mrpc(fake), tmp_path / "runs" / on_mrpc(fake).run)
    folders = [tmp_path / "runs"]
    tasks = tasks_of([usual, guess], folders)
    assert [(task.guess, task.is_guessed) for task in tasks] == [(50.0, False), (75.0, True)]
    teacher, *students = over_tasks(tasks)
    assert teacher.headline == usual.models[0].headline
    for overall, model in zip(students, usual.models[1:], strict=True):
        assert overall.headline == model.headline and overall.delta is not None and model.delta is not None
        assert overall.delta.points == pytest.approx(model.delta.points)
    words = "MRPC does not count in means over tasks: the teacher has 50.00 there, no more than the same answer for every text, 75.00"
    assert any(words in warning for warning in page_of(tasks, folders).warnings)
    assert words in markdown_table([usual, guess], folders)


def test_the_answers_of_one_run_tell_that_a_task_is_guessed_and_without_any_this_is_said(
    fake: ResultMaker, run_directory: ResultMaker, tmp_path: Path
) -> None:
    usual = run_directory(fake())
    both = on_mrpc(fake), on_mrpc(fake, seed=1, run="seed1")
    runs = [guessing(result, tmp_path / "runs" / result.run) for result in both]
    folders = [tmp_path / "runs"]
    for gone, known in ((runs[0], True), (runs[1], False)):
        (tmp_path / "runs" / gone.run / "predictions.npz").unlink()
        tasks = tasks_of([usual, *runs], folders)
        assert [task.is_guessed for task in tasks] == [False, known]
        lines = guess_sentences(tasks)
        assert any(line.startswith("MRPC does not count") for line in lines) == known
        assert any(line.startswith("Means over tasks count MRPC: without predictions") for line in lines) != known


def test_where_all_tasks_are_guessed_all_count(fake: ResultMaker, tmp_path: Path) -> None:
    runs = [guessing(each, tmp_path / "runs" / each.run) for each in (fake(), on_mrpc(fake))]
    tasks = tasks_of(runs, [tmp_path / "runs"])
    assert over_tasks(tasks)[1].headline == 75
    warnings = page_of(tasks, [tmp_path / "runs"]).warnings
    assert not any("does not count" in warning for warning in warnings)
    assert [line.partition(":")[0] for line in warnings if "nothing to compress" in line] == ["SST-2", "MRPC"]


def test_a_teacher_that_was_not_trained_here_is_not_to_be_trained_longer(fake: ResultMaker, tmp_path: Path) -> None:
    def advice(result: Result) -> str:
        (line,) = guess_sentences(tasks_of([guessing(result, tmp_path / result.run)], [tmp_path / result.run]))
        return line

    trained = on_mrpc(fake)
    (teacher, *others) = trained.stages
    assert teacher.kind.startswith("finetune ") and "finetune.epochs" in advice(trained)
    adopted = (teacher.model_copy(update={"kind": "adopt teacher"}), *others)
    line = advice(on_mrpc(fake, stages=adopted, run="adopted"))
    assert "--refit" in line and "labels" in line and "longer" not in line


def test_a_split_with_one_label_asks_for_no_longer_training(fake: ResultMaker, tmp_path: Path) -> None:
    folder = tmp_path / on_mrpc(fake).run
    result = guessing(on_mrpc(fake), folder)
    (task,) = tasks_of([result], [folder])
    perfect = tuple(model.model_copy(update={"headline": 100.0}) for model in task.baseline.models)
    (line,) = guess_sentences([replace(task, guess=100.0, rows=(replace(task.baseline, models=perfect),))])
    assert line.endswith("no score there tells models apart") and "longer" not in line


def test_a_teacher_that_only_guesses_is_named_below_the_table_of_its_run(fake: ResultMaker, tmp_path: Path) -> None:
    folder = tmp_path / on_mrpc(fake).run
    caption = str(summary_table([guessing(on_mrpc(fake), folder)], [folder]).caption)
    assert "MRPC: the teacher has 50.00, no more than the same answer for every text, 75.00" in caption
    assert "finetune.epochs" in caption


def test_predictions_that_are_gone_are_missed(fake: ResultMaker, run_directory: ResultMaker, tmp_path: Path) -> None:
    run = run_directory(fake())
    here = page_of(tasks_of([run], [tmp_path / "runs"]), [tmp_path / "runs"]).warnings
    assert not any("not at hand" in line for line in here)
    assert any("predictions of any run are not at hand" in line for line in page_of(tasks_of([run])).warnings)


def single_threaded(result: Result, **changes: Any) -> Result:
    """Return the result with CPU times and tuning scores; `changes` replace fields of each runtime."""

    def timed(model: ModelResult) -> ModelResult:
        assert model.onnx is not None
        rows = tuple(
            row.model_copy(update={"cpu_p50": row.p50, "cpu_speedup": row.speedup}) for row in model.onnx.latency
        )
        runtime = model.onnx.model_copy(update={"latency": rows, **changes})
        fidelity = {
            "int8_tuning_score": 90.0,
            "fp32_tuning_score": 91.0,
            "flips": 0,
            "examples": 9,
            "mean_abs_logit_change": 0.1,
        }
        info = model.info | ({"fidelity": fidelity} if model.precision == "int8" else {})
        return model.model_copy(update={"onnx": runtime, "torch_eager": None, "info": info})

    noise = tuple(row.model_copy(update={"cpu_p50": row.p50, "cpu_speedup": 1.0}) for row in result.noise)
    return result.model_copy(update={"models": tuple(map(timed, result.models)), "noise": noise})


def test_times_of_several_machines_choose_nothing(fake: ResultMaker) -> None:
    one = single_threaded(fake())
    other = single_threaded(fake("int8"))
    other = other.model_copy(update={"machine": other.machine.model_copy(update={"cpu": "Another CPU"})})
    tasks = tasks_of([one, other])
    lines = recommend(tasks, Limits(min_score=60)).lines
    assert " ms" not in lines[0] and "Times do not count, since those of SST-2 are of several machines." in lines
    with pytest.raises(CompressError, match=r"--max-latency-ms: expected times of one machine, .*SST-2"):
        recommend(tasks, Limits(max_latency_ms=50))


def test_times_of_a_busy_machine_are_used_with_a_word_of_warning(fake: ResultMaker) -> None:
    run = single_threaded(fake())
    assert not any("busy" in line for line in recommend(tasks_of([run]), Limits(max_latency_ms=50)).lines)
    noise = tuple(row.model_copy(update={"cpu_speedup": 0.5}) for row in run.noise)
    recommendation = recommend(tasks_of([run.model_copy(update={"noise": noise})]), Limits(max_latency_ms=50))
    (line,) = (line for line in recommendation.lines if "busy" in line)
    assert "distilbert, student int8" in line and "--rebench" in line


def test_rows_that_ran_on_several_threads_are_named_where_latency_is_limited(fake: ResultMaker) -> None:
    runs = [single_threaded(fake()), single_threaded(fake("int8"), threads=2)]
    with pytest.raises(
        CompressError, match=r"--max-latency-ms: .*; int8, .* ran on more than one thread; run the recipe on one"
    ):
        recommend(tasks_of(runs), Limits(max_latency_ms=50))


def test_the_order_of_runs_does_not_decide_whether_times_are_shown(fake: ResultMaker, tmp_path: Path) -> None:
    timed = fake()
    models = (model.model_copy(update={"onnx": None, "torch_eager": None}) for model in fake("int8").models)
    untimed = fake("int8").model_copy(update={"models": tuple(models)})
    for number, runs in enumerate(([timed, untimed], [untimed, timed])):
        write_report(runs, tmp_path / str(number))
        page = (tmp_path / str(number) / "report.md").read_text(encoding="utf-8")
        assert "score against p50 latency at 1 × 32" in page and "int8, teacher int8 was not timed so." in page


def test_a_page_is_drawn_again_where_any_code_changed(
    fake: ResultMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report([fake()], tmp_path)
    page = tmp_path / "report.md"
    before = page.read_text(encoding="utf-8")
    monkeypatch.setattr("compress.report.text.numbers.points", lambda value: f"{value:.1f} points")
    write_report([fake()], tmp_path)
    assert page.read_text(encoding="utf-8") == before
    from compress.provenance import running_code

    other = running_code().model_copy(update={"source": "0" * 64})
    monkeypatch.setattr("compress.report.running_code", lambda: other)
    write_report([fake()], tmp_path)
    assert page.read_text(encoding="utf-8") != before


@pytest.mark.parametrize(
    ("info", "setting"),
    [
        ({"steps": 60, "spec": {"epochs": 4.0, "max_steps": 60}}, "max_steps=600"),
        ({"steps": 40, "spec": {"epochs": 4.0, "max_steps": 60}}, "epochs=10"),
        ({"steps": 40, "spec": {"epochs": 8.0, "max_steps": None}}, "epochs=16"),
        ({}, "epochs=10"),
    ],
)
def test_a_setting_that_trains_longer(info: dict[str, Any], setting: str) -> None:
    assert _longer([info]) == setting
