"""What the data of plans tell before anything is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..tasks import is_at_hand
from .plan import Plan
from .results.reported import ReportedSource
from .results.truncation import truncation_notes
from .stages.adopt import planned_label_notes


def notes_before_training(plans: Sequence[Plan], reported: Mapping[str, ReportedSource] | None = None) -> list[str]:
    """Return the notes with which a run begins: on the data, and on texts that are cut. `reported`: by the fingerprint of the task.
    Reads the data."""
    reported = reported or {plan.task.fingerprint: ReportedSource.of(plan.task) for plan in plans}
    of_data = (line for plan in plans for line in (*plan.task.data.notes, *plan.task.data.advice))
    return list(dict.fromkeys((*of_data, *truncation_notes(plans, reported).values())))


def data_notes(plans: Sequence[Plan]) -> dict[str, list[str]]:
    """Return name of a plan -> notes on its data, for plans whose data are local: how near the tuning split is to train, which labels an
    adopted teacher's are taken for, and which texts are cut. Reads the data."""
    local = [plan for plan in plans if is_at_hand(plan.task.spec, plan.task.folder, plan.task.data_dir)]
    tasks = {plan.task.fingerprint: plan.task for plan in local}
    reported = {key: ReportedSource.of(task) for key, task in tasks.items()}
    near = {key: reported[key].nearness(task.data) for key, task in tasks.items()}
    cut = truncation_notes(local, reported)
    notes = {}
    for plan in local:
        data = plan.task.data
        lines = near[plan.task.fingerprint], *data.notes, *data.advice, *planned_label_notes(plan), cut.get(plan.name)
        notes[plan.name] = [line for line in lines if line]
    return notes
