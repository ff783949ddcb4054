"""The fine-tuning of a teacher that the tuning split chose among several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...results import Result
from ...results.teachers import Choice
from ..grouping.groups import Task
from ..text import numbers
from ..text.words import join_words

_STAGE = "choose "
_CHOSEN = ("learning_rate", "epochs")


def choices_of(result: Result) -> tuple[Choice, ...]:
    """Return the choice for each teacher that was fine-tuned in several ways."""
    return tuple(choice for _, choice in _choices_by_key(result))


def choice_sentences(task: Task) -> list[str]:
    """Return a sentence for each choice, once for all recipes that share it; without a seed if all seeds share the chosen model."""
    seeds = {run.seed for run in task.results}
    choices = [(key, each, run.seed) for run in task.results for key, each in _choices_by_key(run)]
    shared = {key for key, _, _ in choices if {seed for other, _, seed in choices if other == key} == seeds}
    return list(dict.fromkeys(format_choice(each, None if key in shared else seed) for key, each, seed in choices))


def format_choice(choice: Choice, seed: int | None = None) -> str:
    """Format e.g. `Fine-tuning of bert-base: the tuning split chose learning rate 3e-05 among 4 candidates, with 91.20 points there.`"""
    others = len(choice.ties)
    tie = (
        f" A tie with {join_words([_settings(one) for one in choice.ties])}: of equals the first one written is taken."
        if others
        else ""
    )
    return (
        f"Fine-tuning of {choice.teacher}{'' if seed is None else f', seed {seed}'}: the tuning split chose {_settings(choice.settings)} "
        f"among {choice.candidates} candidates, with {numbers.points(choice.tuning_score)} points there.{tie}"
    )


def _choices_by_key(result: Result) -> Iterator[tuple[str, Choice]]:
    """Yield each choice with the key of the chosen model."""
    for record in result.stages:
        if record.kind.startswith(_STAGE):
            choice = _choice(record.info, _teacher(result, record.kind.removeprefix(_STAGE)))
            if choice is not None:
                yield record.key, choice


def _settings(values: Mapping[str, float]) -> str:
    return " and ".join(
        f"{name.replace('_', ' ')} {repr(float(value)).removesuffix('.0')}" for name, value in values.items()
    )


def _teacher(result: Result, model: str) -> str:
    """Return the name of a plan's `teacher`, `teacher-2`, …"""
    names = [teacher.name for teacher in result.ensemble.teachers] if result.ensemble else [result.teacher]
    number = model.removeprefix("teacher-")
    place = int(number) - 1 if number.isdecimal() else 0
    return names[place] if place < len(names) else model


def _choice(info: Mapping[str, Any], teacher: str) -> Choice | None:
    candidates = info.get("candidates", [])
    best = next((each for each in candidates if each["name"] == info.get("chosen")), None)
    if best is None:
        return None
    varied = [name for name in _CHOSEN if len({each[name] for each in candidates}) > 1]
    settings = [{name: each[name] for name in varied} for each in candidates]
    same = [each["tuning_score"] == best["tuning_score"] and each is not best for each in candidates]
    return Choice(
        teacher=teacher,
        settings=settings[candidates.index(best)],
        tuning_score=best["tuning_score"],
        candidates=len(candidates),
        ties=tuple(one for one, tied in zip(settings, same, strict=True) if tied),
    )
