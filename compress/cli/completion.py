"""Names that a shell completes. Where none begins as the word does, it completes files and folders."""

from __future__ import annotations

from collections.abc import Iterable

from ..files.catalogue import names

# Of `BUILTIN_TASKS`, which takes a second to import: too long for a key.
TASKS = (
    "cola", "mnli", "mrpc", "qnli", "qqp", "rte", "sst2", "stsb", "toy-entailment", "toy-sentiment", "toy-similarity", "wnli"
)  # fmt: skip


def complete_recipe(incomplete: str) -> list[str]:
    return _beginning(incomplete, names("recipes"))


def complete_teacher(incomplete: str) -> list[str]:
    return _beginning(incomplete, names("teachers"))


def complete_student(incomplete: str) -> list[str]:
    return _beginning(incomplete, names("students"))


def complete_task(incomplete: str) -> list[str]:
    return _beginning(incomplete, TASKS)


def _beginning(incomplete: str, known: Iterable[str]) -> list[str]:
    return [name for name in known if name.startswith(incomplete)]
