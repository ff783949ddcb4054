"""Pages of `compress bench`: which rows form a sweep, the figures of plots and tables, and which files are written or refused."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from compress.errors import CompressError
from compress.report.bench import write_bench
from compress.report.bench.page import page_of
from compress.report.bench.plot import picture
from compress.report.bench.sweeps import Sweep, describe, sweeps_of
from compress.report.bench.tables import main_table, memory_table, sweep_table

from .bench_toys import measurements


def sweep_of(title: str, fixed: str, sweeps: list[Sweep]) -> Sweep:
    return next(sweep for sweep in sweeps if (sweep.title, sweep.fixed) == (title, fixed))


def figures(sweep: Sweep, model: str) -> list[tuple[int, float, tuple[float, float] | None]]:
    return [(point.x, point.y, point.interval) for point in sweep.points if point.model == model]


def test_a_sweep_is_what_differs_in_one_thing_alone() -> None:
    titles = [(sweep.title, sweep.fixed) for sweep in sweeps_of(measurements())]
    assert titles == [
        ("CPU time over lengths", "one text at a time, 1 thread"),
        ("Latency over lengths", "one text at a time, 2 threads"),
        ("CPU time per text over batch sizes", "16 tokens, 1 thread"),
        ("Latency per text over batch sizes", "16 tokens, 2 threads"),
        ("Throughput over threads", "one text at a time, 16 tokens"),
        ("Throughput over threads", "one text at a time, 64 tokens"),
        ("Throughput over threads", "batches of 8, 16 tokens"),
    ]
    assert sweeps_of(measurements(((1, 16), (8, 64)), (1,))) == []


def test_a_tasks_own_lengths_are_neither_a_length_nor_a_batch() -> None:
    sweeps = sweeps_of(measurements(((0, 0), (1, 16))))
    assert [sweep.fixed for sweep in sweeps] == [
        "one text at a time, the task's own lengths",
        "one text at a time, 16 tokens",
    ]
    assert figures(sweeps[0], "student") == [(1, 100, (80, 125)), (2, 200, (160, 250))]


def test_figures_are_cpu_time_on_one_thread_and_the_clocks_on_several() -> None:
    sweeps = sweeps_of(measurements())
    cpu = sweep_of("CPU time over lengths", "one text at a time, 1 thread", sweeps)
    assert figures(cpu, "student") == [
        (16, pytest.approx(7.2), pytest.approx((6.48, 7.92))),
        (64, pytest.approx(28.8), pytest.approx((25.92, 31.68))),
    ]
    clock = sweep_of("Latency over lengths", "one text at a time, 2 threads", sweeps)
    assert figures(clock, "teacher") == [(16, 8, pytest.approx((6.4, 10))), (64, 32, pytest.approx((25.6, 40)))]
    text = sweep_of("Latency per text over batch sizes", "16 tokens, 2 threads", sweeps)
    assert [x for x, _, _ in figures(text, "teacher")] == [1, 8]
    assert {y for _, y, _ in figures(text, "teacher")} == {8}  # eight texts take eight times as long
    threads = sweep_of("Throughput over threads", "batches of 8, 16 tokens", sweeps)
    assert figures(threads, "teacher") == [
        (1, 62.5, pytest.approx((50, 78.125))),
        (2, 125, pytest.approx((100, 156.25))),
    ]
    assert [point.y for point in threads.control] == [62.5, 125]


def test_without_cpu_time_the_clock_is_shown_and_without_an_interval_no_bar() -> None:
    measured = measurements(threads=(1,), cpu_p50=None, cpu_speedup=None, p50_interval=None, half_width=None)
    sweep = sweeps_of(measured)[0]
    assert (sweep.title, figures(sweep, "teacher")) == ("Latency over lengths", [(16, 16, None), (64, 64, None)])
    assert {str(line.cells[3]) for line in sweep_table(sweep).lines} == {"–"}


def test_a_plot_has_a_line_and_marks_for_each_model_a_bar_for_each_interval_and_a_legend() -> None:
    measured = measurements()
    sweep = sweeps_of(measured)[0]
    drawn = picture([sweep], measured.models)
    marks = re.findall(r'aria-label="(Model: [^"]*)"', drawn)
    assert len(marks) == 6
    assert (
        marks[2] == "Model: student; Length, tokens: 16; CPU time, ms: 7.20; 95% interval: 6.48 to 7.92; Speed-up: 2.0×"
    )
    plain = picture(
        [replace(sweep, points=tuple(replace(point, interval=None) for point in sweep.points))], measured.models
    )
    assert drawn.count("<line") - plain.count("<line") == 6
    for name in measured.models:
        assert f">{name}</text>" in drawn
    assert "baseline again" not in drawn
    assert describe(sweep).startswith(
        "CPU time over lengths, one text at a time, 1 thread. CPU time, ms; teacher: 14.4 at 16, 57.6 at 64; student: 7.20"
    )


def test_a_model_has_the_same_colour_and_shape_wherever_it_is_drawn() -> None:
    measured = measurements()
    last = {"teacher": 1.0, "student-int8": 0.02}
    (part, *_) = sweeps_of(measurements(threads=(1,), models=last))
    whole = sweeps_of(measured)[0]
    drawn = [picture([sweep], measured.models) for sweep in (part, whole)]
    colours = [re.findall(r'Model: student-int8[^>]*fill="(#[0-9a-f]{6})"', each) for each in drawn]
    assert colours[0] == colours[1] and len(set(colours[0])) == 1


def test_tables_have_every_figure_the_control_and_what_is_too_noisy() -> None:
    measured = measurements(again=1.05, rigor="quick")
    table = sweep_table(sweeps_of(measured)[0])
    assert [str(column) for column in table.columns[:4]] == ["Model", "Length, tokens", "CPU time, ms", "95% interval"]
    assert [str(cell) for cell in table.lines[0].cells] == [
        "teacher", "16", "14.4", "13.0 to 15.8", "1.00×, too noisy", "36",
    ]  # fmt: skip
    assert [line.kind for line in table.lines] == ["model"] * 6 + ["reference"] * 2
    every = main_table(measured)
    assert len(every.lines) == 4 * 3 * 2
    assert [str(cell) for cell in every.lines[0].cells] == [
        "teacher", "1", "1 × 16", "14.4", "1.00×, too noisy", "16.0, 12.8 to 20.0", "62.5", "1.00×, too noisy",
    ]  # fmt: skip
    memory = memory_table(measured)
    assert [str(cell) for cell in memory.lines[0].cells] == ["teacher", "1", "200", "12.5"]
    assert [line.kind for line in memory.lines] == ["baseline", "model", "model", "reference"] * 2
    alone = measurements(threads=(1,), p90=20.0)
    assert [column.text for column in main_table(alone).columns][:6] == [
        "Model", "Shape", "CPU p50", "Speed-up", "Clock p50", "p90",
    ]  # fmt: skip
    assert [str(cell) for cell in memory_table(alone).lines[0].cells] == ["teacher", "200", "12.5"]
    assert any("beyond ±3%" in line for line in page_of(measured, sweeps_of(measured)).reading)
    quiet = measurements(again=1.05)
    assert "too noisy" not in str(main_table(quiet))


def test_of_several_threads_a_warning_says_of_which_it_is() -> None:
    lines = [*measurements(again=1.5).warnings()]
    assert [line.split(":")[0] for line in lines] == ["1 thread", "2 threads"]
    assert next(measurements(threads=(1,), again=1.5).warnings()).startswith("The machine was busy")


def test_the_folder_has_the_page_in_three_forms_and_the_figures(tmp_path: Path) -> None:
    measured = measurements(((1, 16), (1, 64)), (1,))
    written = write_bench(measured, tmp_path / "out")
    assert [path.name for path in written] == ["bench.md", "bench.html", "bench.svg", "bench.json"]
    text, page = ((tmp_path / f"out/bench.{kind}").read_text(encoding="utf-8") for kind in ("md", "html"))
    assert "(bench.svg)" in text and "| student | 16 | 7.20 | 6.48 to 7.92 | 2.00× | 36 |" in text
    assert page.count("<svg") == 1 and page.count('class="chart"') == 1
    assert "teacher, 1 × 16, one thread: time by operator" in page
    for written_text in (text, page):
        assert "a whole run 1.20× the floor" in written_text.replace("\\", "")
    assert not re.search(r'(?:src|href)="(?!#)', page)
    document = json.loads((tmp_path / "out/bench.json").read_text(encoding="utf-8"))
    assert document == json.loads(json.dumps(measured.document()))
    before = {path: path.read_bytes() for path in written}
    write_bench(measured, tmp_path / "out")
    assert {path: path.read_bytes() for path in written} == before


def test_without_a_sweep_the_page_says_what_a_plot_needs_and_the_old_picture_goes(tmp_path: Path) -> None:
    write_bench(measurements(((1, 16), (1, 64)), (1,)), tmp_path)
    assert (tmp_path / "bench.svg").exists()
    written = write_bench(measurements(((1, 16),), (1,)), tmp_path)
    assert [path.name for path in written] == ["bench.md", "bench.html", "bench.json"]
    assert not (tmp_path / "bench.svg").exists()
    for kind in ("md", "html"):
        assert "A plot needs shapes or threads that differ" in (tmp_path / f"bench.{kind}").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [("bench.md", "mine"), ("bench.json", "mine"), ("bench.md", "# Notes\n\n```sh\ncompress bench my-int8\n```\n")],
)
def test_a_file_of_somebody_elses_stays(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(CompressError, match=f"{name}: is no page of `compress bench` and is not replaced"):
        write_bench(measurements(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text(encoding="utf-8") == text
