"""Compare recorded results with those of reruns: equal where they must be, within intervals elsewhere.

The same model is on both sides, made twice. `report` compares different models: a student with its teacher, recipes with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import CompressError
from ..report import find_predictions, load_answers, metric_giving
from ..results import PREDICTIONS, ModelResult, Result
from ..stats.percentiles import CONFIDENCE
from ..stats.significance import delta, holm, p_value
from ..tasks import TASK_KINDS
from .conditions import DECIDED_BY_TIMES, are_exact, conditions_of, is_sized_by_times
from .figures import Figure, Interval, ReproducedRun, Reproduction, Verdict
from .reruns import Rerun

HEADLINE = "headline"
_ROOM = 0.01  # share of a size: other versions of exporters write other names and constants into a file
_NO_ANSWERS = "no answers are on record"
_Outputs = tuple[np.ndarray, np.ndarray, np.ndarray]  # recorded, new, gold


def compare_reruns(reruns: Sequence[Rerun], results: Sequence[Result], source: Path) -> Reproduction:
    """Compare the results. `results`: one for each of `reruns`. `source`: the report or run, which may contain answers besides its results.

    Raises `CompressError` if a file of answers cannot be read.
    """
    runs = [_run(rerun, now, source) for rerun, now in zip(reruns, results, strict=True)]
    corrected = iter(holm([figure.interval.p for run in runs for figure in run.figures if figure.interval]))
    judged = [
        run.model_copy(update={"figures": tuple(_judge_figure(figure, corrected) for figure in run.figures)})
        for run in runs
    ]
    return Reproduction(source=str(source), out=str(reruns[0].request.root), runs=tuple(judged))


def _judge_figure(figure: Figure, corrected: Iterator[float]) -> Figure:
    """Return the figure with the verdict of its interval, if it has one."""
    if figure.interval is None:
        return figure
    interval = figure.interval.model_copy(update={"p": next(corrected)})
    holds = interval.low <= 0 <= interval.high or interval.p >= 1 - CONFIDENCE
    return figure.model_copy(update={"interval": interval, "verdict": "within its interval" if holds else "differs"})


def _run(rerun: Rerun, now: Result, source: Path) -> ReproducedRun:
    recorded, conditions = rerun.recorded, conditions_of(rerun.recorded, now)
    pair = _Pair(recorded, now, find_predictions(recorded, [source]), rerun.request.root / now.run / PREDICTIONS)
    exact = are_exact(conditions)
    return ReproducedRun(
        recorded=recorded.run,
        run=now.run,
        command=now.command,
        recipe=recorded.recipe["name"],
        task=recorded.task.name,
        seed=recorded.seed,
        exact=exact,
        conditions=conditions,
        changed_settings=rerun.changed,
        stages=len(rerun.plan.nodes),
        stages_from_store=rerun.stored,
        figures=tuple(
            figure
            for model in recorded.models
            for figure in _figures(pair, model, exact=exact and not is_sized_by_times(recorded, model))
        ),
    )


@dataclass(frozen=True)
class _Pair:
    """A recorded result and the new one; `before` and `after`: their files of answers."""

    recorded: Result
    now: Result
    before: Path | None
    after: Path

    def outputs(self, model: ModelResult, split: str) -> _Outputs | None:
        """Return (recorded, new, gold) [example, ...]; None if nothing is recorded."""
        if self.before is None:
            return None
        (old,), gold = load_answers(self.before, self.recorded, [model.predictions], split)
        (new,), again = load_answers(self.after, self.now, [model.predictions], split)
        if not np.array_equal(gold, again):
            raise CompressError(f"{self.before}: its gold labels of {split} are others than those read now")
        return old, new, gold


def _figures(pair: _Pair, model: ModelResult, *, exact: bool) -> Iterator[Figure]:
    """Yield the figures of one model: its scores, then its sizes."""
    label = f"{model.name} {model.precision}"
    other = next((each for each in pair.now.models if each.predictions == model.predictions), None)
    for split, scores in model.scores.items():
        outputs = pair.outputs(model, split) if other is not None else None
        named = {HEADLINE: model.headline} if split == pair.recorded.task.splits[0] and len(scores) > 1 else {}
        for name, points in {**named, **scores}.items():
            now = None if other is None else _score_of(other, split, name)
            figure = Figure(model=label, name=name, split=split, recorded=points, now=now, verdict="differs")
            yield _score(pair, model, figure, outputs, exact=exact)
    for name in ("file_bytes", "parameters"):
        then, now = getattr(model, name), None if other is None else getattr(other, name)
        figure = Figure(model=label, name=name, recorded=then, now=now, verdict=_of_size(then, now, exact=exact))
        if figure.verdict == "differs" and now is not None and is_sized_by_times(pair.recorded, model):
            figure = figure.model_copy(update={"verdict": "not judged", "why": DECIDED_BY_TIMES})
        yield figure


def _score_of(model: ModelResult, split: str, name: str) -> float | None:
    """Return a score of the model, None if it has none of that name."""
    return model.headline if name == HEADLINE else model.scores.get(split, {}).get(name)


def _of_size(then: int, now: int | None, *, exact: bool) -> Verdict:
    if then == now:
        return "same"
    near = now is not None and not exact and abs(now - then) <= _ROOM * then
    return "within 1%" if near else "differs"


def _score(pair: _Pair, model: ModelResult, figure: Figure, outputs: _Outputs | None, *, exact: bool) -> Figure:
    if figure.now is None:
        return figure.model_copy(update={"why": "no such model or score is made now"})
    figure = figure.model_copy(update=_counts(pair, outputs))
    if figure.now == figure.recorded and not figure.changed:
        return figure.model_copy(update={"verdict": "same"})
    if exact:
        return figure
    if outputs is None:
        return figure.model_copy(update=_by_recorded_width(pair, model, figure))
    return figure.model_copy(update=_by_answers(pair, figure, outputs))


def _counts(pair: _Pair, outputs: _Outputs | None) -> dict[str, int]:
    """Count the examples with another answer, as the metrics see it."""
    if outputs is None:
        return {}
    task = pair.recorded.task
    differ = TASK_KINDS[task.kind].scoring.headline(task.metrics, -1, task.labels).differ(*outputs[:2])
    return {"changed": int(differ.sum()), "examples": len(differ)}


def _by_answers(pair: _Pair, figure: Figure, outputs: _Outputs) -> dict[str, str | Interval]:
    """Compute the paired bootstrap of new answers against recorded ones, on the same examples. The verdict follows after the correction."""
    old, new, gold = outputs
    task = pair.recorded.task
    metrics = task.metrics if figure.name == HEADLINE else (figure.name,)
    sizes = task.sizes if figure.split == task.splits[0] else ()
    run = pair.now if task.positive is None else pair.recorded  # today's records which class F1 counts
    metric = metric_giving([(figure.recorded, old, gold)], run, metrics, sizes)
    if metric is None:
        return {"why": "the recorded answers do not give the recorded score"}
    difference = delta(metric, old, new, gold)
    return {
        "interval": Interval(points=difference.points, low=difference.low, high=difference.high, p=p_value(difference))
    }


def _by_recorded_width(pair: _Pair, model: ModelResult, figure: Figure) -> dict[str, str]:
    """Judge by half the width of the recorded interval of the headline score's difference to the teacher."""
    task = pair.recorded.task
    is_headline = figure.split == task.splits[0] and (figure.name == HEADLINE or len(task.metrics) == 1)
    if model.delta is None or not is_headline or figure.now is None:
        return {"verdict": "not judged", "why": _NO_ANSWERS}
    half = (model.delta.high - model.delta.low) / 2
    verdict: Verdict = "within its interval" if abs(figure.now - figure.recorded) <= half else "differs"
    return {"verdict": verdict, "why": f"{_NO_ANSWERS}; ±{half:.2f} of its difference to the teacher"}
