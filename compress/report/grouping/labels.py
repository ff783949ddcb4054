"""Labels of a report's rows: recipe names, with what differs if one was run in several ways or on several machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from ...results import Machine, Result

_LONGEST = 90  # characters of a label's part on how runs differ
Settings = dict[str, dict[str, str]]  # a stage's name in `--set` -> its fields -> their values


def row_labels(rows: Sequence[Sequence[Result]], known: Sequence[Machine]) -> list[str]:
    """Return the recipe's name for the seeds of each row, with what differs if one recipe was run in several ways, and the letters of
    their machines among those `known`."""
    firsts = [seeds[0] for seeds in rows]
    labels = [name_of(result) for result in firsts]
    for part in (lambda r: r.teachers, lambda r: r.student or ""):
        _tell_apart(labels, firsts, part)
    for label in {label for label in labels if labels.count(label) > 1}:
        places = [index for index, other in enumerate(labels) if other == label]
        for index, difference in zip(places, _differences([firsts[index] for index in places]), strict=True):
            labels[index] = f"{label} ({difference})" if difference else label
    for label in {label for label in labels if labels.count(label) > 1}:
        places = [index for index, other in enumerate(labels) if other == label]
        if known and len({frozenset(map(machine_of, rows[index])) for index in places}) == len(places):
            continue  # their letters tell them apart
        for index, digest in zip(places, _differing_files([firsts[index] for index in places]), strict=True):
            labels[index] = f"{label} ({digest})" if digest else label
    if known:
        ids = [machine.kind for machine in known]
        clocks = [[seed for seed in seeds if is_timed(seed)] for seeds in rows]
        several = len({machine_of(seed) for timed in clocks for seed in timed}) > 1
        for index, (seeds, timed) in enumerate(zip(rows, clocks, strict=True)):
            letters = _letters(seeds, ids)
            clock = f"; timed on {_letters(timed, ids)}" if several and timed and len(letters) > 1 else ""
            labels[index] = f"{labels[index]} [{letters}{clock}]"
    card = _card_fields(firsts)
    for part in (*_CORPUS, lambda r: r.final.architecture, *card, lambda r: str(r.settings.get("precision")), _timing):
        _tell_apart(labels, firsts, part)
    counts: dict[str, int] = {}
    for index, label in enumerate(labels):
        counts[label] = counts.get(label, 0) + 1
        if counts[label] > 1:
            labels[index] = f"{label} #{counts[label]}"
    return labels


def _tell_apart(labels: list[str], firsts: list[Result], part: Callable[[Result], str]) -> None:
    """Add `part` of the results to equal labels, if it differs."""
    for label in {label for label in labels if labels.count(label) > 1}:
        places = [index for index, other in enumerate(labels) if other == label]
        if len({part(firsts[index]) for index in places}) > 1:
            for index in places:
                labels[index] = f"{label} ({part(firsts[index])})"


_CORPUS: tuple[Callable[[Result], str], ...] = (  # the names of its files, and what tells files of the same names apart
    lambda result: ", ".join(result.corpus.names) if result.corpus else "text not recorded",
    lambda result: f"text {result.corpus.fingerprint[:8]}" if result.corpus else "",
)


def _card_fields(results: Sequence[Result]) -> Iterator[Callable[[Result], str]]:
    """Yield, for each field of the students' cards, what says its value in a result, e.g. `copy_layers=[0, 3]`."""
    for name in dict.fromkeys(name for result in results for name in result.student_card or ()):
        yield partial(_card_field, name)


def _card_field(name: str, result: Result) -> str:
    if result.student_card is None:
        return "student's card not recorded"
    value = result.student_card.get(name, "as usual")
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"


def _timing(result: Result) -> str:
    """Return e.g. `timed: runs 36, warmup 5, threads 1`."""
    bench = result.settings.get("bench")
    return f"timed: {', '.join(f'{name} {value}' for name, value in bench.items())}" if bench else "not timed"


def _differences(results: list[Result]) -> list[str]:
    """Return for each result the settings that not all share, as in `--set`, and the stages that it lacks; empty if that is too long."""
    (differences,) = differences_within([results])
    return differences if max(map(len, differences)) <= _LONGEST else [""] * len(differences)


def differences_within(groups: Sequence[Sequence[Result]]) -> list[list[str]]:
    """Return for each result of each group its settings, as in `--set`, and the stages that it lacks, as far as the results of some
    group do not share them. What differs between groups alone is left out."""
    settings = [[_settings(result) for result in group] for group in groups]
    fields = dict.fromkeys(field for group in settings for field in _differing_fields(group))
    return [[", ".join(_values_of(fields, each)) for each in group] for group in settings]


def _differing_fields(settings: Sequence[Settings]) -> list[tuple[str, str]]:
    """Return the (stage, field) whose values are not the same in all; the field is empty for a stage that not all have."""
    ids = dict.fromkeys(name for each in settings for name in each)
    lacking = [name for name in ids if not all(name in each for each in settings)]
    shared = [name for name in ids if name not in lacking]
    fields = dict.fromkeys((name, field) for name in shared for each in settings for field in each[name])
    differing = [(name, field) for name, field in fields if len({each[name].get(field) for each in settings}) > 1]
    return [*((name, "") for name in lacking), *differing]


def _values_of(fields: Iterable[tuple[str, str]], settings: Settings) -> Iterator[str]:
    for name, field in fields:
        if not field:
            yield from [] if name in settings else [f"without {name}"]
        elif field in settings.get(name, {}):
            yield f"{name}.{field}={settings[name][field]}"


def files_of(result: Result) -> dict[str, str] | None:
    """Return file -> SHA-256 for the checkpoints that its teachers, and a student of its own, start from; None if not recorded."""
    if result.origin is None:
        return None
    several = [teacher.origin for teacher in result.ensemble.teachers] if result.ensemble else [result.origin]
    named = {
        **{f"teacher {number}": origin for number, origin in enumerate(several, 1)},
        "student": result.student_origin,
    }
    return {
        f"{who}: {name}": digest for who, origin in named.items() if origin for name, digest in origin.files.items()
    }


def _differing_files(results: list[Result]) -> list[str]:
    """Return for each result the start of the hash of the first file that is not the same in all; empty if it lacks the file."""
    files = [files_of(result) or {} for result in results]
    names = dict.fromkeys(name for each in files for name in each)
    differing = next((name for name in names if len({each.get(name) for each in files}) > 1), "")
    return [each.get(differing, "")[:8] for each in files]


def _settings(result: Result) -> Settings:
    """Return the settings of each stage."""
    stages = [(kind, fields or {}) for stage in result.recipe.get("stages", ()) for kind, fields in stage.items()]
    return {
        fields.get("name", kind): {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in fields.items()
            if name != "name"
        }
        for kind, fields in stages
    }


def letter(index: int) -> str:
    """Return the letter of a machine in the report: A, B, …."""
    return chr(ord("A") + index) if index < 26 else str(index + 1)


def name_of(result: Result) -> str:
    return str(result.recipe.get("name") or result.run)


def _letters(results: Iterable[Result], machines: Sequence[str]) -> str:
    """Return the letters of the results' machines, e.g. `A` or `A, B`."""
    return ", ".join(letter(index) for index in sorted({machines.index(machine_of(result)) for result in results}))


def is_timed(result: Result) -> bool:
    """Whether the run's models were timed."""
    return any(model.onnx for model in result.models)


def machine_of(result: Result) -> str:
    """Return what identifies the kind of machine of a run."""
    return result.machine.kind
