"""Times of models that were timed in different runs, scaled by the teacher that each run timed beside them: machines grow slower and
faster from one minute to the next."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...results import Result, Runtime
from ...results.timing import headline
from ..text import numbers
from .conditions import timed_threads
from .groups import Row, Shape, Task
from .labels import machine_of

_LEAST_DRIFT = 0.01  # between runs, worth a sentence, and a chart with other times than the table


def steady_times(task: Task, row: Row, shape: Shape) -> list[float]:
    """Return the milliseconds of each timed seed of `row`, as if its teacher had been as quick in that seed's run
    as it was in its quickest one; as measured, if all its runs were about as quick."""
    references, times = _teacher_times(task, shape), []
    for run, model in task.models_of(row):
        time = _milliseconds(model.torch_eager if row.eager else model.onnx, shape, task)
        beside = _milliseconds(run.models[0].onnx, shape, task)
        if time is not None:
            of_teacher = references.get(_teacher(run), [])
            drifts = bool(beside) and _drift(of_teacher) >= _LEAST_DRIFT
            times.append(time * min(of_teacher) / beside if beside and drifts else time)
    return times


def drift_sentence(tasks: Sequence[tuple[Task, Shape | None]]) -> str | None:
    """Say that times at these shapes are scaled, and how far apart the runs were; None if no teacher was timed in several, or alike."""
    groups = [times for task, shape in tasks if shape for times in _teacher_times(task, shape).values()]
    most = max(map(_drift, groups), default=0.0)
    if most < _LEAST_DRIFT:
        return None
    return (
        f"Times are scaled to the run in which the teacher was quickest: it differs by up to {numbers.percent(most)} between runs. "
        "Tables have them as measured."
    )


def _drift(times: Sequence[float]) -> float:
    """Return by which share the slowest is slower than the quickest."""
    return max(times) / min(times) - 1


def _teacher_times(task: Task, shape: Shape) -> dict[Hashable, list[float]]:
    """Return the milliseconds that each teacher took in each run that timed it."""
    times: dict[Hashable, list[float]] = {}
    for run in task.results:
        if (own := _milliseconds(run.models[0].onnx, shape, task)) is not None:
            times.setdefault(_teacher(run), []).append(own)
    return times


def _teacher(run: Result) -> Hashable:
    """Return what decides how long the run's teacher takes: not its training."""
    return machine_of(run), *timed_threads([run]), run.teacher, run.models[0].parameters


def _milliseconds(runtime: Runtime | None, shape: Shape, task: Task) -> float | None:
    latencies = runtime.latency if runtime else ()
    return next(
        (headline(each, cpu=task.cpu_time)[0] for each in latencies if (each.batch, each.length) == shape), None
    )
