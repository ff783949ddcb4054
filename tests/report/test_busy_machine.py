"""Speed in reports: CPU time first, and a note if the machine was busy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.console import Console

from compress.report import markdown_table, summary_table
from compress.report.page import page_of, tasks_of
from compress.report.pictures.plot_points import points_of, shape_of
from compress.report.render import markdown_report
from compress.report.sections.sentences import busy, findings, tradeoffs
from compress.report.text import numbers
from compress.results import Latency, ModelResult, Result, Runtime


@pytest.fixture
def loaded(fake: Callable[..., Result]) -> Result:
    """Return results as from a busy machine: int8 is 2.73 times as fast in CPU time, and seems 9.7 times as fast in wall-clock time."""

    def row(latency: Latency, speedup: float, cpu_speedup: float) -> Latency:
        ms = 10.0 if latency.length == 32 else 30.0
        changes = {"p50": 40 / speedup, "speedup": speedup, "cpu_p50": ms / cpu_speedup, "cpu_speedup": cpu_speedup}
        return latency.model_copy(update=changes)

    def timed(runtime: Runtime | None, *speedups: float) -> Runtime | None:
        if runtime is None:
            return None
        return runtime.model_copy(
            update={"threads": 1, "latency": tuple(row(one, *speedups) for one in runtime.latency)}
        )

    def model(plain: ModelResult) -> ModelResult:
        speedups = (9.7, 2.73) if plain.precision == "int8" else (1.0, 1.0)
        return plain.model_copy(
            update={"onnx": timed(plain.onnx, *speedups), "torch_eager": timed(plain.torch_eager, 0.5, 0.5)}
        )

    result = fake()
    noise = tuple(row(one, 1.63, 1.02) for one in result.noise)
    return result.model_copy(update={"models": tuple(map(model, result.models)), "noise": noise})


def terminal(result: Result) -> str:
    console = Console(width=120)
    with console.capture() as shown:
        console.print(summary_table([result]))
    return shown.get()


def test_every_headline_is_cpu_time(loaded: Result) -> None:
    assert loaded.noise
    (task,) = tasks_of([loaded], [])
    (point,) = [point for point in points_of(task) if "int8" in point.label]
    assert point.x == pytest.approx(10 / 2.73)
    assert point.tip["Speed-up"] == "2.7×"
    for text in (terminal(loaded), markdown_table([loaded])):
        assert "2.7×" in text
        assert "9.7×" not in text
        assert "CPU" in text


def test_the_page_has_wall_time_beside_it_and_says_what_not_to_trust(loaded: Result) -> None:
    tasks = tasks_of([loaded], [])
    (warning,) = busy([loaded], [(1, 32)])
    assert "trust CPU time, not wall time" in warning
    for text in (markdown_report(page_of(tasks, []), "digest"), terminal(loaded).replace("\n", " ")):
        assert "The machine was busy" in text
    text = markdown_report(page_of(tasks, []), "digest")
    assert "CPU ms; wall p50 / p90" in text
    assert f"(2.7×); wall {numbers.significant(40 / 9.7)}" in text
    assert "2.7× on one text of 32 tokens" in text


def test_a_quiet_machine_gets_no_such_line(fake: Callable[..., Result]) -> None:
    assert busy([fake()], [(1, 32)]) == []


def test_runs_of_one_name_are_told_apart(loaded: Result) -> None:
    elsewhere = loaded.model_copy(update={"machine": loaded.machine.model_copy(update={"cpu": "Z another CPU"})})
    one, other = busy([loaded, elsewhere], [(1, 32)])
    assert one.startswith(f"{loaded.run} [A]: The machine was busy")
    assert other.startswith(f"{loaded.run} [B]: The machine was busy")
    runtimes = [model.onnx.model_copy(update={"threads": 2}) for model in loaded.models if model.onnx]
    models = [
        model.model_copy(update={"onnx": runtime}) for model, runtime in zip(loaded.models, runtimes, strict=True)
    ]
    on_two = loaded.model_copy(update={"models": tuple(models)})
    one, other = busy([loaded, on_two], [(1, 32)])
    assert one.startswith(f"{loaded.run} (1 thread): ")
    assert other.startswith(f"{loaded.run} (2 threads): ")


def doubted(result: Result, *shapes: tuple[int, int]) -> Result:
    """Return the same run with an A/A control in CPU time that is off in `shapes`."""
    noise = (row.model_copy(update={"cpu_speedup": 1.3}) for row in result.noise if (row.batch, row.length) in shapes)
    return result.model_copy(update={"noise": tuple(noise)})


def test_no_sentence_states_a_time_that_the_warning_says_not_to_trust(loaded: Result) -> None:
    (whole,) = tasks_of([doubted(loaded)], [])
    assert "2.7× on one text of 32 tokens, 2.7× on one of 128 and 2.7× on the task's own lengths" in findings(whole)[0]

    result = doubted(loaded, (0, 0), (1, 128))
    (warning,) = busy([result], [(1, 32), (1, 128), (0, 0)])
    assert "trust no time and no speed-up of the task's lengths, 1 × 128" in warning
    (task,) = tasks_of([result], [])
    assert findings(task)[0].endswith("is 2.7× on one text of 32 tokens.")
    (task,) = tasks_of([doubted(loaded, (1, 32))], [])
    assert "is 2.7× on one text of 128 tokens and 2.7× on the task's own lengths" in findings(task)[0]


def test_a_speed_in_doubt_everywhere_is_left_out(loaded: Result) -> None:
    (task,) = tasks_of([doubted(loaded, *((row.batch, row.length) for row in loaded.noise))], [])
    assert "speed" not in findings(task)[0] and "Its file is " in findings(task)[0]


def test_a_tradeoff_goes_by_a_latency_that_can_be_trusted(loaded: Result) -> None:
    def int8_of_the_teacher(result: Result) -> Result:
        models = tuple(model.model_copy(update={"parameters": 22_713_986}) for model in result.models)
        return result.model_copy(update={"models": models})

    (before,) = tasks_of([int8_of_the_teacher(doubted(loaded))], [])
    (task,) = tasks_of([int8_of_the_teacher(doubted(loaded, (1, 128)))], [])
    assert "latency at 1 × 128" in tradeoffs(before)[-1]
    assert "latency at 1 × 32 to 37%" in tradeoffs(task)[-1] and "1 × 128" not in tradeoffs(task)[-1]


def test_the_plot_shows_a_time_that_can_be_trusted_if_there_is_one(loaded: Result) -> None:
    shapes = [(row.batch, row.length) for row in loaded.noise]
    tasks = [tasks_of([doubted(loaded, *rows)], [])[0] for rows in ((), ((1, 32),), shapes)]
    assert [shape_of(task) for task in tasks] == [(1, 32), (1, 128), (1, 32)]
