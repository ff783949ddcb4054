"""choose: the best of several trainings of one model on the tuning split, unchanged."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

from ...results import LOG
from ...spec.stages import Finetune
from ...spec.stages.finetune import CHOSEN, combinations, lists, too_many
from ...store.manifest import NAME as MANIFEST
from ..plan import Draft, Job, Kind
from .adopt import can_judge

_ALONE = "teacher"  # the name in plans of a model that is the only teacher
_SHORT = {"learning_rate": "lr", "epochs": "epochs"}


class Candidate(TypedDict):
    """One training. `name` omits the model's, which another run may name differently. `tuning_score` in points."""

    name: str
    learning_rate: float
    epochs: float
    tuning_score: float


class ChooseInfo(TypedDict):
    """The name of the `chosen` candidate, with its settings and score; and all candidates in the order written."""

    chosen: str
    learning_rate: float
    epochs: float
    tuning_score: float
    candidates: list[Candidate]


def add_best(
    draft: Draft, name: str, fields: dict[str, Any], add: Callable[[str, Finetune], str], *, stage: str
) -> None:
    """Let `add` plan the training `name` with `fields`. If they list values, plan a training for each combination, with the key that it has
    alone, and the choice among them, which is then called `name`.

    Plans call the model `name` too. The key of the choice does not depend on that, so that runs in which the model is another of several
    teachers share it.

    Raises `CompressError` for more combinations than are allowed, and for several if no score can decide between them.
    """
    if problem := too_many(fields):
        raise draft.fails(stage, problem)
    fields = fields | {field: fields[field][0] for field in lists(fields) if len(fields[field]) == 1}
    grid = combinations(fields)
    spec = Finetune.model_validate(fields)
    if len(grid) == 1:
        add(name, spec)
        return
    if not can_judge(draft.task.data):
        raise draft.fails(
            stage,
            f"{lists(fields)[0]}: lists values to choose among, and one tuning example has no correlation to choose by; give one value, or "
            "more tuning examples with --tuning",
        )
    inputs = {
        _candidate_name(_ALONE, values): add(_candidate_name(name, values), Finetune.model_validate(fields | values))
        for values in grid
    }
    draft.add(CHOOSE, name, name, spec, {"candidates": list(inputs)}, inputs=inputs, stage=stage)
    where = f"{stage} of {draft.teachers[name].card.name}" if draft.others else stage
    draft.notes.append(_note(fields, where, len(grid), draft.sizes[name].parameters))


def _candidate_name(name: str, values: dict[str, float]) -> str:
    """E.g. `teacher-lr2e-05-epochs3`."""
    return "-".join([name, *(f"{_SHORT[field]}{_shortest(value)}" for field, value in values.items())])


def _shortest(value: float) -> str:
    return repr(float(value)).removesuffix(".0")  # `:g` would call near values the same


def _note(fields: dict[str, Any], where: str, count: int, parameters: int) -> str:
    choices = " and ".join(f"{name} {', '.join(map(_shortest, fields[name]))}" for name in lists(fields))
    return (
        f"{where}: {count} candidates, of {choices}: the best on the tuning split is chosen, of equals the "
        f"first; their checkpoints, {4 * parameters / 1e6:,.0f} MB each, stay in the store"
    )


def run(job: Job[Finetune]) -> ChooseInfo:
    """Write the checkpoint of the best candidate."""
    specs = {node.id: node.spec for node in job.plan.nodes}
    candidates = [
        Candidate(
            name=role.removeprefix(f"{_ALONE}-"),
            **{field: getattr(specs[node], field) for field in CHOSEN},
            tuning_score=job.inputs[role].info["tuning_score"],
        )
        for role, node in job.node.inputs.items()
    ]
    best = max(candidates, key=lambda candidate: candidate["tuning_score"])  # the first of equals
    _link_files(job.inputs[f"{_ALONE}-{best['name']}"].path, job.out)
    job.context.notice(_choice_notice(job.node.id, best, candidates))
    return ChooseInfo(
        chosen=best["name"],
        learning_rate=best["learning_rate"],
        epochs=best["epochs"],
        tuning_score=best["tuning_score"],
        candidates=candidates,
    )


def _choice_notice(model: str, best: Candidate, candidates: list[Candidate]) -> str:
    scores = ", ".join(f"{candidate['name']} {candidate['tuning_score']:.2f}" for candidate in candidates)
    equals = [each["name"] for each in candidates if each["tuning_score"] == best["tuning_score"] and each is not best]
    tie = f"; a tie with {', '.join(equals)}: the first one listed is chosen" if equals else ""
    return f"{model}: chosen on the tuning split: {best['name']} (of {scores}){tie}"


def _link_files(source: Path, out: Path) -> None:
    """Link the training's files, except its log: hard links take no space, and no file of an artefact is ever rewritten. Copies where links
    are not supported."""
    for path in (path for path in source.iterdir() if path.name not in (MANIFEST, LOG)):
        try:
            os.link(path, out / path.name)
        except OSError:
            shutil.copyfile(path, out / path.name)


CHOOSE = Kind("choose", 1, Finetune, run=run, checkpoint=True, chooses=True)
