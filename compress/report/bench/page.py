"""Measurements as a page: plots of what varies, the table for each, and how to read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..pictures.drawing import inline
from ..render import html, template
from ..sections.details import machine_words
from ..text.cells import Table
from .measurements import Measurements
from .plot import picture
from .profiles import ProfileSection, profile_sections
from .sweeps import BATCHES, THREADS, Sweep, describe
from .tables import main_table, memory_table, sweep_table

_CLOCKS = (
    "CPU time is the p50 of the CPU time of a model's process during a run, on one thread: it holds on a busy machine too. Latency is "
    "the p50 by the clock, which also counts the time that others had the core.",
    "Every model has a process of its own, and each round runs all of them once in a new order. Speed-ups are to the first "
    "model, in the same rounds. The baseline again is that model in a second process: how far it is from 1.0× is the noise.",
    "Bars and intervals are of the p50, at 95%; points of too few runs have none.",
)
_THROUGHPUT = "Throughput over threads is by the clock: the texts of a run that takes its p50, in a second."
_PER_TEXT = (
    "Over batch sizes, times are those of a run divided by its texts; the first text of a batch waits for the last."
)
_TOO_NOISY = "Too noisy: the baseline again is beyond ±3% at this shape, so that no ratio of it counts."
_PROFILES = "Time by operator is the sum of each node's least time over the profiled runs, of the graph as ONNX Runtime rewrote it."


@dataclass(frozen=True)
class Part:
    """One sweep. `title` is unique on the page."""

    title: str
    words: str
    table: Table


@dataclass(frozen=True)
class Section:
    """The sweeps over one quantity."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Page:
    title: str
    lede: str
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
    tables: tuple[Table, ...]
    profiles: tuple[ProfileSection, ...]
    reading: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    command: str


def page_of(measured: Measurements, sweeps: Sequence[Sweep]) -> Page:
    names = measured.models
    return Page(
        title=f"Latency of {names[0] if len(names) == 1 else f'{len(names)} models'}",
        lede=_lede(measured),
        warnings=tuple(measured.warnings()),
        sections=tuple(_sections(sweeps)),
        tables=(main_table(measured), memory_table(measured)),
        profiles=tuple(profile_sections(measured)),
        reading=tuple(_reading_notes(measured, sweeps)),
        environment=tuple(_environment(measured)),
        command=measured.command,
    )


def markdown_bench(page: Page) -> str:
    return template("bench.md.j2").render(page=page).strip() + "\n"


def html_bench(page: Page, sweeps: Sequence[Sweep], models: Sequence[str]) -> str:
    charts = {_sweep_title(sweep): inline(picture([sweep], models)) for sweep in sweeps}
    return html("bench.html.j2", page=page, charts=charts)


def _sections(sweeps: Sequence[Sweep]) -> Iterator[Section]:
    for over in dict.fromkeys(sweep.over for sweep in sweeps):
        mine = [sweep for sweep in sweeps if sweep.over == over]
        yield Section(
            f"Over {over}", tuple(Part(_sweep_title(each), describe(each), sweep_table(each)) for each in mine)
        )


def _sweep_title(sweep: Sweep) -> str:
    return f"{sweep.title}: {sweep.fixed}"


def _lede(measured: Measurements) -> str:
    count = len(measured.models)
    task = f", and at the lengths of {measured.task}" if measured.task else ""
    return f"{count} model{'s' if count > 1 else ''} on {measured.machine.cpu}{task}. The baseline is {measured.models[0]}."


def _reading_notes(measured: Measurements, sweeps: Sequence[Sweep]) -> Iterator[str]:
    yield from _CLOCKS
    over = {sweep.over for sweep in sweeps}
    yield from (line for what, line in ((BATCHES, _PER_TEXT), (THREADS, _THROUGHPUT)) if what in over)
    if any(measured.noisy(runtimes) for runtimes in measured.runtimes):
        yield _TOO_NOISY
    if measured.profiles:
        yield _PROFILES
    if not sweeps:
        yield "A plot needs shapes or threads that differ: several lengths, several batches or several numbers of threads."


def _environment(measured: Measurements) -> Iterator[tuple[str, str]]:
    yield "Machine", machine_words(measured.machine)
    yield "Instruction sets", ", ".join(measured.machine.isa) or "baseline"
    for name, runtime in measured.runtimes[0].items():
        if name in measured.models and runtime.engine:
            yield f"Engine of {name}", runtime.engine
    if measured.rigor:
        yield "Rigor", measured.rigor
    yield "Versions", ", ".join(f"{name} {version}" for name, version in sorted(measured.versions.items()))
    yield "Code", str(measured.code)
