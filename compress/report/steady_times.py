"""Times of models that were timed in different runs, scaled by the teacher that each run timed beside them: machines grow slower and
faster from one minute to the next."""

from __future__ import annotations

from collections.abc import Sequence

from ..results import Runtime
from ..timing import headline
from . import numbers
from .runs import Row, Shape, Task

_TOLD = 0.01  # smaller differences between runs are not worth a sentence


def steady_times(task: Task, row: Row, shape: Shape) -> list[float]:
    """Return the milliseconds of each timed seed of `row`, as if its teacher had taken in that seed's run what its own row shows."""
    reference = task.baseline_of(row).latency(shape)
    times = []
    for run, model in task.models_of(row):
        time = _milliseconds(model.torch_eager if row.eager else model.onnx, shape, task)
        beside = _milliseconds(run.models[0].onnx, shape, task)
        if time is not None:
            scale = headline(reference, cpu=task.cpu_time)[0] / beside if reference and beside else 1.0
            times.append(time * scale)
    return times


def drift_sentence(tasks: Sequence[tuple[Task, Shape | None]]) -> str | None:
    """Say that times at these shapes are scaled, and how far apart the runs were; None if no teacher was timed in several, or alike."""
    most = max((_drift(task, shape) for task, shape in tasks if shape), default=0.0)
    if most < _TOLD:
        return None
    return f"Times are scaled by the teacher's, which differed by up to {numbers.percent(most)} between the runs."


def _drift(task: Task, shape: Shape) -> float:
    """Return how much longer a teacher took in its slowest run than in its quickest, as a share; the largest of several teachers."""
    times: dict[tuple[object, ...], list[float]] = {}
    for variant in task.variants:
        own = (_milliseconds(run.models[0].onnx, shape, task) for run in variant.runs)
        times.setdefault(variant.teachers, []).extend(time for time in own if time is not None)
    return max((max(each) / min(each) - 1 for each in times.values() if each), default=0.0)


def _milliseconds(runtime: Runtime | None, shape: Shape, task: Task) -> float | None:
    latencies = runtime.latency if runtime else ()
    return next(
        (headline(each, cpu=task.cpu_time)[0] for each in latencies if (each.batch, each.length) == shape), None
    )
