"""The difference to the teacher over several seeds: from the predictions where they are at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ..errors import CompressError
from ..results import PREDICTIONS, Delta, ModelResult, Result
from ..statistics import Headline, paired_bootstrap_seeds
from .runs import Variant

RECOMPUTED = "predictions of all seeds, resampled together with the seeds"
ENVELOPE = "the widest of the seeds' own intervals (their predictions are not at hand)"


def over_seeds(folders: Sequence[Path]) -> Callable[[Variant, str], Delta | None]:
    """How to get the difference of a variant's model to its baseline.

    `folders`: run directories, or folders of them, where `predictions.npz` may be. One seed has its difference in
    its result. Several: resampled from the predictions, or else the mean with the widest of their intervals.
    """

    def delta_of(variant: Variant, name: str) -> Delta | None:
        models = variant.models(name)
        deltas = [model.delta for model in models if model.delta]
        if len(deltas) < len(models) or len(models) < 2:
            return deltas[0] if deltas else None
        files = [find_predictions(run, folders) for run in variant.runs]
        if all(files) and len(models) == len(variant.runs):
            return _resampled(variant, models, [file for file in files if file])
        points = sum(delta.points for delta in deltas) / len(deltas)
        return Delta(points=points, low=min(d.low for d in deltas), high=max(d.high for d in deltas), mcnemar_p=None)

    return delta_of


def how_over_seeds(variants: Sequence[Variant], folders: Sequence[Path]) -> str | None:
    """How the intervals over seeds were made; None where there is one seed only."""
    several = [variant for variant in variants if len(variant.runs) > 1]
    if not several:
        return None
    at_hand = all(find_predictions(run, folders) for variant in several for run in variant.runs)
    return RECOMPUTED if at_hand else ENVELOPE


def find_predictions(run: Result, folders: Sequence[Path]) -> Path | None:
    """The predictions file of `run` in one of `folders`, by the name of its directory."""
    places = [folder if folder.name == run.run else folder / run.run for folder in folders]
    return next((place / PREDICTIONS for place in places if (place / PREDICTIONS).is_file()), None)


def _resampled(variant: Variant, models: Sequence[ModelResult], files: Sequence[Path]) -> Delta:
    split = variant.first.task.splits[0]
    pairs, golds, metric = [], [], None
    for run, model, file in zip(variant.runs, models, files, strict=True):
        base, other, gold = load_arrays(
            file, [f"{run.models[0].predictions}/{split}", f"{model.predictions}/{split}", f"gold/{split}"]
        )
        metric = metric or metric_of(run, model, other, gold, file)
        if abs(metric(other, gold) - model.headline) > 0.01:
            raise CompressError(_contradiction(file, run, model))
        pairs.append((base, other))
        golds.append(gold)
    if any(not np.array_equal(gold, golds[0]) for gold in golds):
        raise CompressError(
            f"{files[0].parent}: its gold labels differ from those of the other seeds; report them apart"
        )
    if metric is None:
        raise RuntimeError("a variant has runs")
    points, low, high = paired_bootstrap_seeds(metric, pairs, golds[0])
    return Delta(points=points, low=low, high=high, mcnemar_p=None)


def load_arrays(file: Path, names: list[str]) -> list[np.ndarray]:
    """Arrays of a predictions file. Raises `CompressError` naming the file when it does not have them."""
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return [arrays[name] for name in names]
    except KeyError as error:
        raise CompressError(f"{file}: expected an array {error.args[0]}; run the recipe again") from None
    except (OSError, ValueError, BadZipFile) as error:
        raise CompressError(f"{file}: cannot be read as predictions: {error}; run the recipe again") from None


def metric_of(run: Result, model: ModelResult, logits: np.ndarray, gold: np.ndarray, file: Path) -> Headline:
    """The metric that gives the score on record: a result does not say which class F1 counts, the last one unless
    its task file chose another."""
    classes = len(run.task.labels) or 1
    for positive in (-1, *range(classes - 1)):
        metric = Headline(run.task.metrics, positive)
        if abs(metric(logits, gold) - model.headline) <= 0.01:
            return metric
    raise CompressError(_contradiction(file, run, model))


def _contradiction(file: Path, run: Result, model: ModelResult) -> str:
    return (
        f"{file}: its {model.predictions} do not give the score in the result of {run.run} "
        f"({model.headline:.2f}); the two are not of the same run"
    )
