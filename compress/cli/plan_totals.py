"""What several plans need together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..pipeline.estimate import estimate
from ..pipeline.side_by_side import max_parallel_stages
from ..store import Store

if TYPE_CHECKING:
    from ..pipeline import Plan


def training_total(plans: list[Plan], documents: list[dict[str, Any]], root: Path) -> str | None:
    """Return a line on what several plans leave to train together; None for one plan, or if one needs the hub. `documents`: of `plans`."""
    if len(plans) < 2 or any(document["data"] is None for document in documents):
        return None
    total = str(replace(estimate(plans, root, assume=True), smaller=None)).removeprefix("training: ")
    return f"training of all {len(plans)} runs, what they share counted once: {total}"


def crowded_memory(plans: list[Plan], documents: list[dict[str, Any]], root: Path, jobs: int) -> str | None:
    """Return the line with which `run` warns that the stages of `jobs` processes need more memory than there is; None without need, and if
    a plan needs the hub. `documents`: of `plans`."""
    if jobs == 1 or any(document["data"] is None for document in documents):
        return None
    training, jobs = estimate(plans, root, assume=True), min(jobs, max_parallel_stages(plans, Store.of_runs(root)))
    return None if training.fits(jobs) else training.memory_line(jobs)
