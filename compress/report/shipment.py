"""Find the run of the model that a report recommends to ship."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import CompressError
from ..model_choice import Limits
from ..results import MODELS, ModelResult, Result, read_result
from .grouping.collect import collect
from .grouping.predictions import own_file
from .page import tasks_of
from .recommendation import options_of, recommend
from .text.words import join_words


@dataclass(frozen=True)
class Shipment:
    """The `folder` of a run, and `model` and `precisions` as `compress ship` takes them. `why`: in sentences; None if the user chose."""

    folder: Path
    model: str | None
    precisions: tuple[str, ...]
    why: str | None


def shipment_of(source: Path, limits: Limits) -> Shipment:
    """Return what to ship. `source`: a report, a run or a folder of runs, of one task.

    Raises `CompressError` if no model meets the limits, saying which comes nearest and what it misses, or if the run is neither in
    `source`, beside it nor in runs, or has been replaced.
    """
    tasks = tasks_of(collect([source]))
    if len(tasks) > 1:
        titles = join_words([task.first.task.marked_title for task in tasks])
        runs = [run.run for run in tasks[0].results if (source / run.run).is_dir()]
        way = (
            f"name one run, such as {source / runs[0]}"
            if runs
            else "`compress report` with the same limits gives a command for each"
        )
        raise CompressError(f"{source}: --from takes results of one task, found {titles}; {way}")
    recommendation = recommend(tasks, limits)
    if recommendation.missed:
        raise CompressError(f"{source}: {' '.join(recommendation.lines)}")
    ((run, model),) = recommendation.models
    return Shipment(_folder_of(run, source), *options_of(run, model), " ".join(recommendation.lines))


def _folder_of(run: Result, source: Path) -> Path:
    own = source.resolve() if source.exists() else source
    report = own.parent if own.is_file() else own
    places = [report, report.parent, Path("runs")]
    file = own_file(run, places, MODELS)
    if file is None:
        raise CompressError(
            f"{source}: run {run.run}, which it recommends, is not in it, beside it or in runs; give `compress run` again, "
            "or --from the folder of the runs"
        )
    if [_measurements_of(model) for model in read_result(file.parent).models] != [
        _measurements_of(model) for model in run.models
    ]:
        raise CompressError(
            f"{file.parent}: is another run than the one that {source} recommends; make the report again"
        )
    return file.parent


def _measurements_of(model: ModelResult) -> tuple[object, ...]:
    return model.name, model.precision, model.file_bytes, model.scores
