"""The kinds of machines of a report: which there are, and which need a letter in the names of rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...results import Machine, Result
from .conditions import identities
from .labels import is_timed, machine_of


def machines(results: Sequence[Result]) -> list[Machine]:
    """Return the different machines, those that timed runs first, each with the most cores that one of its runs might use. Letters
    follow this order, whatever that of the results.

    Cores, memory and the operating system's patch level do not distinguish machines: the number of threads with which a model was timed is
    given next to it.
    """
    by_kind: dict[str, Machine] = {}
    for result in sorted(results, key=lambda result: result.machine.cores):
        by_kind[machine_of(result)] = result.machine
    timed = {machine_of(result) for result in results if is_timed(result)}
    return [by_kind[name] for name in sorted(by_kind, key=lambda name: (name not in timed, name))]


def lettered_machines(results: Sequence[Result]) -> list[Machine]:
    """Return the machines that need a letter in row names; empty if the rows of each task are of the same ones, and all times of one."""
    timed = [result for result in results if is_timed(result)]
    apart = any(len(set(_machines_of_rows(part))) > 1 for part in by_task(results).values())
    return machines(results) if apart or len(machines(timed)) > 1 else []


def _machines_of_rows(results: Sequence[Result]) -> list[frozenset[str]]:
    """Return the machines of each group of runs that are seeds of one another."""
    groups: dict[Hashable, set[str]] = {}
    for result, identity in zip(results, identities(results), strict=True):
        groups.setdefault(identity, set()).add(machine_of(result))
    return [frozenset(group) for group in groups.values()]


def by_task(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Group results by the task's name, in the order in which tasks first appear."""
    tasks: dict[str, list[Result]] = {}
    for result in results:
        tasks.setdefault(result.task.name, []).append(result)
    return tasks
