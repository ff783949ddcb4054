"""What must agree for two runs to be seeds of one another."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ..results import Result
from .labels import files_of, machine_of


def timed_threads(results: Iterable[Result]) -> list[int]:
    """Return the different numbers of threads with which models were timed; empty if none was."""
    return sorted({model.onnx.threads for result in results for model in result.models if model.onnx})


def identities(results: Sequence[Result]) -> Sequence[Hashable]:
    """Return what must agree for two runs to be seeds of one another. A run that was not timed, and an old result without recorded
    checkpoint files, go with the others that agree in all else, if these were timed alike, or start from the same files; else they are on
    their own."""
    timings = _shared_value([(_run_conditions(result), _timing(result)) for result in results])
    return _shared_value(
        [
            (
                (_run_conditions(result), timing),
                None if (files := files_of(result)) is None else frozenset(files.items()),
            )
            for result, (_, timing) in zip(results, timings, strict=True)
        ]
    )


def _shared_value(pairs: Sequence[tuple[Any, Hashable | None]]) -> list[tuple[Any, Hashable | None]]:
    """Return (key, value) of each pair, where a value that is None is that of the others with the same key, if these have one alone."""
    known: dict[Any, set[Hashable]] = {}
    for key, value in pairs:
        known.setdefault(key, set()).update([] if value is None else [value])
    return [(key, next(iter(known[key])) if value is None and len(known[key]) == 1 else value) for key, value in pairs]


def _run_conditions(result: Result) -> str:
    """Return all that such runs have in common, except how they were timed and the files of their checkpoints."""
    how = [machine_of(result), result.settings.get("precision")]
    return json.dumps([result.recipe, result.teachers, result.student, how], sort_keys=True, default=str)


def _timing(result: Result) -> str | None:
    """Return how the run's models were timed; None if they were not."""
    threads = timed_threads([result])
    return json.dumps([threads, result.settings.get("bench")], sort_keys=True, default=str) if threads else None
