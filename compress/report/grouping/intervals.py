"""The difference to the teacher over several seeds: from the predictions if they are available."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import CompressError
from ...results import ModelResult, Result
from ...results.fidelity import Delta
from ...stats.significance import Paired, mean_over_tasks, recorded_over_seeds
from ..text.words import join_words
from .groups import Variant
from .predictions import find_predictions, load_answers
from .recorded_scores import Scored, metric_giving, metric_of

RECOMPUTED = "predictions of all seeds: a bootstrap over examples, widened by the spread of the seeds with Student's t"
ONE_SEED = "the intervals hold the chance of which examples were drawn, not that of training again"
RECORDED = "spread of the seeds and their own intervals, as if all seeds erred on the same examples (their predictions are not at hand)"


def over_seeds(folders: Sequence[Path]) -> Callable[[Variant, str], Delta | None]:
    """Return a function that computes the difference of a variant's model to its baseline.

    `folders`: where predictions may be, as `find_predictions` takes them. With one seed, the difference is that of its result; with several
    it is computed from the predictions, or else from their recorded differences and intervals. Seeds that draw nothing make the same model,
    which counts once.
    """

    def delta_of(variant: Variant, name: str) -> Delta | None:
        variant = replace(variant, runs=_distinct_runs(variant.runs))
        models = variant.models(name)
        deltas = [model.delta for model in models if model.delta]
        if len(deltas) < len(models) or not models:
            return deltas[0] if deltas else None
        files = [find_predictions(run, folders) for run in variant.runs]
        if len(models) == 1:
            _check_scores(variant.first, models[0], files[0])
            return deltas[0]
        if all(files) and len(models) == len(variant.runs):
            return _resampled_delta(variant, models, [file for file in files if file])
        return recorded_over_seeds(deltas, variant.first.task.metrics)

    return delta_of


def _distinct_runs(runs: Sequence[Result]) -> tuple[Result, ...]:
    """Return the first of each set of `runs` with the same artefacts; all of those without recorded artefacts."""
    firsts = {tuple(stage.key for stage in run.stages) or run.run: run for run in reversed(runs)}
    return tuple(reversed(firsts.values()))


def best_guess(folders: Sequence[Path]) -> Callable[[Sequence[Variant]], float | None]:
    """Return a function that computes, from the gold labels of a task, the points of the best constant answer; None if models do not choose
    among classes, or if the predictions of no run are available."""

    def guess_of(variants: Sequence[Variant]) -> float | None:
        runs = [run for variant in variants for run in variant.runs if run.task.kind == "classification"]
        files = ((run, find_predictions(run, folders)) for run in runs)
        run, file = next(((run, file) for run, file in files if file is not None), (None, None))
        if run is None or file is None:
            return None
        answers, gold = load_answers(file, run, [model.predictions for model in run.models])
        scores = [(model.headline, outputs, gold) for model, outputs in zip(run.models, answers, strict=True)]
        metric = metric_giving(scores, run, run.task.metrics, run.task.sizes)
        if metric is None:
            return None
        one_hot = np.eye(len(run.task.labels), dtype=np.float32)
        return max(metric(np.broadcast_to(each, (len(gold), len(each))), gold) for each in one_hot)

    return guess_of


def how_over_seeds(variants: Sequence[Variant], folders: Sequence[Path]) -> str | None:
    """Return how the intervals over seeds were computed; None if there is only one seed."""
    several = [variant for variant in variants if len(_distinct_runs(variant.runs)) > 1]
    recorded = [
        variant
        for variant in several
        if not all(find_predictions(run, folders) for run in _distinct_runs(variant.runs))
    ]
    if not several or len(recorded) == len(several):
        return RECORDED if several else None
    if not recorded:
        return RECOMPUTED
    return f"{RECOMPUTED}; those of {named_on_tasks(recorded)} from the {RECORDED}"


def named_on_tasks(variants: Sequence[Variant]) -> str:
    """Return e.g. `int8 and albert on MRPC, and albert on CoLA`."""
    labels: dict[str, list[str]] = {}
    for variant in variants:
        labels.setdefault(variant.first.task.marked_title, []).append(variant.label)
    titles: dict[str, list[str]] = {}
    for title, own in labels.items():
        titles.setdefault(join_words(own), []).append(title)
    return ", and ".join(f"{own} on {join_words(tasks)}" for own, tasks in titles.items())


def _resampled_delta(variant: Variant, models: Sequence[ModelResult], files: Sequence[Path]) -> Delta:
    seeds = [_both(run, model, file) for run, model, file in zip(variant.runs, models, files, strict=True)]
    gold = seeds[0][0].gold
    if any(not np.array_equal(base.gold, gold) for base, _ in seeds):
        raise CompressError(
            f"{files[0].parent}: its gold labels differ from those of the other seeds; report them apart"
        )
    metric = metric_of([each for pair in seeds for each in pair])
    return mean_over_tasks([Paired(metric, [(base.outputs, other.outputs) for base, other in seeds], gold)])


def _check_scores(run: Result, model: ModelResult, file: Path | None) -> None:
    """Raise `CompressError` if the answers of the baseline or of `model` are available and do not give the score on record."""
    if file is not None:
        metric_of(_both(run, model, file))


def _both(run: Result, model: ModelResult, file: Path) -> tuple[Scored, Scored]:
    """Return the run's baseline and its `model` with their answers."""
    (base, other), gold = load_answers(file, run, [run.models[0].predictions, model.predictions])
    return Scored(run, run.models[0], base, gold, file), Scored(run, model, other, gold, file)
