"""What must agree for two runs to be seeds of one another."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ...machine import EXACT_INT8
from ...results import Machine, Result
from .labels import files_of, is_timed, machine_of

_BY_CARD = re.compile(r"\d+ x \d+, \d+ heads, FFN \d+")


def timed_threads(results: Iterable[Result]) -> list[int]:
    """Return the different numbers of threads with which models were timed; empty if none was."""
    return sorted({model.onnx.threads for result in results for model in result.models if model.onnx})


def identities(results: Sequence[Result]) -> Sequence[Hashable]:
    """Return what must agree for two runs to be seeds of one another. A run that was not timed, and an old result without recorded plain
    text, checkpoint files or student's card, go with the others that agree in all else, if these were timed alike, or read the same text,
    start from the same files, or have the same card; else they are on their own. Seeds may be of several machines, if no more than one
    timed its runs and no seed is there twice."""
    texts = _shared_value([(_run_conditions(each), each.corpus and each.corpus.fingerprint) for each in results])
    conditions = _with_machines(results, list(map(json.dumps, texts)))
    timings = _shared_value([(each, _timing(result)) for each, result in zip(conditions, results, strict=True)])
    starts = _shared_value(
        [
            (timing, None if (files := files_of(result)) is None else frozenset(files.items()))
            for result, timing in zip(results, timings, strict=True)
        ]
    )
    return _shared_value(
        [
            (start, None if result.student_card is None else json.dumps(result.student_card, sort_keys=True))
            for result, start in zip(results, starts, strict=True)
        ]
    )


def _with_machines(results: Sequence[Result], conditions: Sequence[str]) -> list[tuple[str, str]]:
    """Return each run's conditions with its machine, which is empty where the runs of several machines can be seeds of one another."""
    clocks: dict[str, set[str]] = {}
    places: dict[tuple[str, int], set[str]] = {}
    for result, condition in zip(results, conditions, strict=True):
        places.setdefault((condition, result.seed), set()).add(machine_of(result))
        if is_timed(result):
            clocks.setdefault(condition, set()).add(machine_of(result))
    apart = {condition for (condition, _), several in places.items() if len(several) > 1}
    apart |= {condition for condition, several in clocks.items() if len(several) > 1}
    return [
        (condition, machine_of(result) if condition in apart else "")
        for result, condition in zip(results, conditions, strict=True)
    ]


def _shared_value(pairs: Sequence[tuple[Any, Hashable | None]]) -> list[tuple[Any, Hashable | None]]:
    """Return (key, value) of each pair, where a value that is None is that of the others with the same key, if these have one alone."""
    known: dict[Any, set[Hashable]] = {}
    for key, value in pairs:
        known.setdefault(key, set()).update([] if value is None else [value])
    return [(key, next(iter(known[key])) if value is None and len(known[key]) == 1 else value) for key, value in pairs]


def _run_conditions(result: Result) -> str:
    """Return all that such runs have in common, except the machine, how they were timed, the plain text and the files of their
    checkpoints."""
    how = [_may_saturate(result.machine), result.settings.get("precision"), fixed_architectures(result)]
    return json.dumps([result.recipe, result.teachers, result.student, how], sort_keys=True, default=str)


def fixed_architectures(result: Result) -> dict[str, str]:
    """Return model -> architecture, of models whose cards decide it: a card of one name may have changed between runs. The shape of a
    pruned model, and the rows of a table of vectors, may differ by seed."""
    if any("prune" in stage for stage in result.recipe.get("stages", ())):
        return {}
    return {model.name: model.architecture for model in result.models if _BY_CARD.fullmatch(model.architecture)}


def _may_saturate(machine: Machine) -> bool:
    """Whether int8 sums may clip at 16 bits there, so that int8 scores are not those of other machines."""
    return "neon" not in machine.isa and not EXACT_INT8 & set(machine.isa)


def _timing(result: Result) -> str | None:
    """Return how the run's models were timed; None if they were not."""
    threads = timed_threads([result])
    return json.dumps([threads, result.settings.get("bench")], sort_keys=True, default=str) if threads else None


def trainings(results: Sequence[Result]) -> list[int]:
    """Return a number for each run's teacher, equal for runs with the same one: of the same size and scores, and trained by the same
    stage, as far as that is on record, or with the same seed. Scores alone do not tell: two trainings may tie, on a small split or where
    one answer is always given."""
    numbers = list(range(len(results)))
    for index, result in enumerate(results):
        same = {numbers[earlier] for earlier in range(index) if _have_same_teacher(results[earlier], result)}
        if same:
            numbers = [
                min(same) if number in same or place == index else number for place, number in enumerate(numbers)
            ]
    return numbers


def _have_same_teacher(one: Result, other: Result) -> bool:
    mine, theirs = one.models[0], other.models[0]
    if (mine.file_bytes, mine.scores) != (theirs.file_bytes, theirs.scores):
        return False
    keys = {_teacher_key(one), _teacher_key(other)}
    return one.seed == other.seed or len(keys) == 1 or None in keys


def _teacher_key(result: Result) -> str | None:
    """Return the key of the stage that made the teacher; None if the result has none."""
    keys = [stage.key for stage in result.stages if stage.kind.endswith(" teacher")]
    return keys[-1] if keys else None
