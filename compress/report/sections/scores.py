"""The tables of a task: scores, sizes and speed of every model, and every measured latency."""

from __future__ import annotations

from collections.abc import Iterator

from ...results import SUBSET, Latency
from ...results.teachers import EnsembleScore
from ...results.timing import headline
from ..grouping.groups import MAIN_SHAPES, Row, Shape, Task, Variant
from ..text import numbers
from ..text.cells import NOTHING, Cell, Column, Line, Table, text_cells
from ..text.words import METRIC_WORDS
from .differences import difference_cell

TEACHERS_MEAN = "the teachers' mean"


SIZES = (
    Column("File", "MB"),
    Column("Parameters", "M"),
    Column("Per token", "MFLOPs"),
    Column("Per example", "MFLOPs"),
)
NO_SIZES = (Cell(NOTHING),) * len(SIZES)


def main_table(task: Task) -> Table:
    """Return one line per model: its scores, speed and size."""
    shapes = [shape for shape in MAIN_SHAPES if shape in task.shapes] or task.shapes[:3]
    metrics = _metrics(task)
    columns = (
        Column("Recipe", numeric=False),
        Column("Model", numeric=False),
        *(Column(name, numeric=True) for name in metrics),
        Column(f"Against {task.teacher}", "points, 95% interval"),
        *(Column(numbers.shape(*shape), times_unit(task)) for shape in shapes),
        *SIZES,
    )
    lines = [_model_line(task, row, metrics, shapes) for row in task.rows]
    lines += _mean_lines(task, metrics, len(shapes))
    lines += [*_noise_line(task, len(metrics), shapes), *_published_lines(task, metrics, len(shapes))]
    shown = "accuracy, size and speed" if shapes else "accuracy and size"
    return Table(f"{task.first.task.marked_title}: {shown}", columns, tuple(lines), headings=2)


def latency_table(task: Task) -> Table | None:
    """Return every measured shape; None if nothing was timed."""
    if not task.shapes:
        return None
    columns = (
        Column("Model", numeric=False),
        Column("Batch × length", numeric=False),
        Column("CPU p50", "ms"),
        Column("Speed-up", "CPU"),
        Column("Wall p50", "ms"),
        Column("p90", "ms"),
        Column("p99", "ms"),
        Column("Examples", "per s"),
        Column("Speed-up", "wall"),
        Column("Peak memory", "MB"),
        Column("Load", "ms"),
    )
    lines = [line for row in task.rows for line in _latency_lines(task, row)]
    for shape in task.shapes:
        noise = task.noise(shape)
        if noise:
            cells = (Cell("A/A: the baseline again"), *_timing(shape, noise), Cell(NOTHING), Cell(NOTHING))
            lines.append(Line(cells, "reference"))
    return Table(f"{task.first.task.marked_title}: latency of every model", columns, tuple(lines), headings=2)


def _metrics(task: Task) -> dict[str, tuple[str, str] | None]:
    """Return column -> (split, metric); None is the headline, shown if it is the mean of several."""
    info = task.first.task
    several = len(info.splits) > 1
    columns: dict[str, tuple[str, str] | None] = {
        f"{METRIC_WORDS[metric].column}, {split}" if several else METRIC_WORDS[metric].column: (split, metric)
        for split in info.splits
        for metric in info.metrics
    }
    if len(info.metrics) > 1:
        columns[f"Mean, {info.splits[0]}" if several and not info.sizes else "Mean"] = None
    return columns


def _model_line(task: Task, row: Row, metrics: dict[str, tuple[str, str] | None], shapes: list[Shape]) -> Line:
    timings = tuple(times_of(task, row.latency(shape), row is task.baseline) for shape in shapes)
    recipe, name = Cell(row.recipe or "baseline"), Cell(row.name, "PyTorch eager" if row.eager else "")
    if row.eager:  # the same weights on another runtime: only the timing is new
        return Line((recipe, name, *[Cell(NOTHING)] * (len(metrics) + 1), *timings, *NO_SIZES), "eager")
    shown = (
        recipe,
        name,
        *(Cell(score_of(row, where)) for where in metrics.values()),
        difference_cell(row.delta, row.corrected),
        *timings,
        Cell(megabytes_of(row)),
        *(
            Cell(numbers.extremes(numbers.millions, [getattr(model, name) for model in row.models]))
            for name in ("parameters", "flops_per_token", "flops_per_example")
        ),
    )
    return Line(shown, "model" if row.recipe else "baseline")


def megabytes_of(row: Row) -> str:
    """Return the file's size; from the smallest to the largest, if seeds differ."""
    return numbers.extremes(numbers.megabytes, [model.file_bytes for model in row.models])


def score_of(row: Row, where: tuple[str, str] | None) -> str:
    """Return the mean over seeds ± its deviation, which a model that all seeds share does not have: a teacher, or one with equal bins."""
    points = [model.headline if where is None else model.scores[where[0]][where[1]] for model in row.models]
    is_shared = row.delta is None or (
        bool(row.model.reliability) and len({model.reliability for model in row.models}) == 1
    )
    return numbers.scores(points[:1] if is_shared and len(set(points)) == 1 else points)


def times_unit(task: Task) -> str:
    return "CPU ms; wall p50 / p90" if task.cpu_time else "ms p50 / p90"


def times_of(task: Task, latency: Latency | None, baseline: bool = False, *, wall: bool = True) -> Cell:
    """Format e.g. `1.93 (2.73×); wall 1.95 / 2.11`: the headline with its speed-up, and with `wall` the wall time."""
    if latency is None:
        return Cell(NOTHING)
    time, speedup = headline(latency, cpu=task.cpu_time)
    ratio = "" if baseline else f"({numbers.times(speedup)})"
    if not wall:
        return Cell(numbers.significant(time), ratio)
    if not task.cpu_time:
        return Cell(f"{numbers.significant(time)} / {_or_nothing(latency.p90)}", ratio)
    beside = f"wall {numbers.significant(latency.p50)} / {_or_nothing(latency.p90)}"
    return Cell(numbers.significant(time), "; ".join(part for part in (ratio, beside) if part))


def taught_by(task: Task) -> Iterator[tuple[Variant, list[EnsembleScore]]]:
    """Yield each recipe whose students learnt from several teachers, with the ensemble's scores by seed."""
    for variant in task.variants:
        if ensembles := [run.ensemble for run in variant.runs if run.ensemble]:
            yield variant, ensembles


def _mean_lines(task: Task, metrics: dict[str, tuple[str, str] | None], shapes: int) -> Iterator[Line]:
    for variant, ensembles in taught_by(task):
        heading = (
            Cell(variant.label),
            Cell(TEACHERS_MEAN, f"of {len(ensembles[0].teachers)}, which the student learnt"),
        )
        scores = (
            numbers.scores([each.scores[where[0]][where[1]] if where else each.headline for each in ensembles])
            for where in metrics.values()
        )
        yield Line((*heading, *map(Cell, scores), *[Cell(NOTHING)] * (1 + shapes), *NO_SIZES), "reference")


def _noise_line(task: Task, metrics: int, shapes: list[Shape]) -> Iterator[Line]:
    latencies = [task.noise(shape) for shape in shapes]
    if any(latencies):
        heading = (Cell("baseline"), Cell(task.baseline.name, "A/A: measured again"))
        times = (times_of(task, latency) for latency in latencies)
        yield Line((*heading, *[Cell(NOTHING)] * (metrics + 1), *times, *NO_SIZES), "reference")


def _published_lines(task: Task, metrics: dict[str, tuple[str, str] | None], shapes: int) -> Iterator[Line]:
    """Yield published scores, but only if ours were computed on the whole data."""
    info = task.first.task
    if any(SUBSET in note for note in info.data.notes):
        return
    published = {
        source: score for run in task.results for source, score in (run.settings.get("published") or {}).items()
    }
    for source, score in sorted(published.items()):
        one = len(metrics) == 1
        text = numbers.points(float(score))
        heading = (Cell("published"), Cell(source, "" if one else f"scores {text}"))
        shown = Cell(text) if one else Cell(NOTHING)
        rest = [Cell(NOTHING)] * (len(metrics) - 1 + 1 + shapes)
        yield Line((*heading, shown, *rest, *NO_SIZES), "reference")


def _latency_lines(task: Task, row: Row) -> Iterator[Line]:
    memory = max((runtime.peak_memory_bytes for runtime in row.runtimes), default=0)
    load = min((runtime.load_ms for runtime in row.runtimes), default=0.0)
    for shape in task.shapes:
        latency = row.latency(shape)
        if latency:
            ends = (Cell(numbers.megabytes(memory)), Cell(numbers.significant(load)))
            kind = "eager" if row.eager else "model" if row.recipe else "baseline"
            yield Line((Cell(row.label), *_timing(shape, latency), *ends), kind)


def _timing(shape: Shape, latency: Latency) -> tuple[Cell, ...]:
    cpu = _or_nothing(latency.cpu_p50)
    cpu_speedup = NOTHING if latency.cpu_speedup is None else numbers.times(latency.cpu_speedup)
    wall = map(_or_nothing, (latency.p50, latency.p90, latency.p99, latency.examples_per_second))
    return text_cells(numbers.shape(*shape), cpu, cpu_speedup, *wall, numbers.times(latency.speedup))


def _or_nothing(value: float | None) -> str:
    return NOTHING if value is None else numbers.significant(value)
