"""A label for each word of a text: named entities, parts of speech, chunks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import CompressError
from ...metrics import TagsHeadline, are_entities
from ...metrics.tags import (
    ENTITY_METRICS,
    OUTSIDE,
    TypeScore,
    concatenate_labels,
    entity_flips,
    entity_metric,
    split_labels,
    type_scores,
)
from ...spec.kinds import MetricName
from ...spec.task import TaskSpec
from ..ensembles import fit_temperature, mean_of_probabilities
from ..reading.columns import Rows
from ..reading.tables import refuse
from ..reading.tag_schemes import are_tags_of_entities, is_tag
from ..reading.tagged import parse_tagged
from .classification import (
    CLASSIFICATION,
    MOST_UNLISTED_LABELS,
    check_unicode,
    largest_probability,
    natural,
    unknown_label,
)
from .kind import ConstantBaseline, Decisions, Labels, Scoring, TaskKind, TeacherEnsemble


def _label_names(spec: TaskSpec, train: Rows) -> tuple[str, ...]:
    """Return the spec's `labels`, or else those that the data set declares and that occur in the training texts. Raises `CompressError` if
    a metric of the task does not fit them, or there are too few or too many."""
    names = listed_tags(str(spec.label), train) if spec.labels is None else spec.labels
    check_unicode(train.place, spec.label, names)
    _check_marks(spec, names)
    wrong = [metric for metric in spec.metrics if metric not in _applicable_metrics(spec.metrics, names)]
    if wrong:
        raise CompressError(
            f"task {spec.name}: metric `{wrong[0]}` needs labels of entities, such as O, B-PER and I-PER, found "
            f"{', '.join(names[:8])}; take `accuracy`"
        )
    return names


def listed_tags(column: str, train: Rows) -> tuple[str, ...]:
    """Return tags in order: for entities `O`, then `B-` and `I-` of each type; else `O` first, then numbers, then alphabetically. Raises
    `CompressError` if there are too many, probably by mistake, or too few."""
    tags = {name for words in train.labels for name, _, _ in words} | set(train.declared or ())
    if are_entities((OUTSIDE, *tags)) and tags != {OUTSIDE}:
        types = sorted({name[2:] for name in tags if name != OUTSIDE})
        names = (OUTSIDE, *(f"{prefix}-{name}" for name in types for prefix in "BI"))
    else:
        names = (*([OUTSIDE] if OUTSIDE in tags else []), *sorted(tags - {OUTSIDE}, key=natural))
    if len(names) > MOST_UNLISTED_LABELS:
        raise CompressError(
            f"{train.place}: column {column!r} has {len(names):,} different labels; list them under `labels` if "
            "they are intended"
        )
    if len(names) < 2:
        only = f"all words have the label {names[0]!r}" if names else "no text has a word"
        raise CompressError(f"{train.place}: column {column!r}: {only}; training needs at least two labels")
    return names


def _check_marks(spec: TaskSpec, names: tuple[str, ...]) -> None:
    """Raise `CompressError` if entity `labels` lack the beginning of a type, or do not begin with `O`, which is the label of words that no
    model reads. A type whose entities are single words needs no inside."""
    if OUTSIDE in names and names[0] != OUTSIDE:
        raise CompressError(f"task {spec.name}: `labels` must begin with {OUTSIDE!r}, found {names[0]!r} first")
    if not are_entities(names) and are_tags_of_entities(names) and all(map(is_tag, names)):
        raise CompressError(
            f"task {spec.name}: `labels` of entities are listed in IOB2, as `O`, `B-PER`, `I-PER`, whatever the files have; found "
            f"{', '.join(names[:8])}"
        )
    for name in names if are_entities(names) else ():
        beginning = f"B-{name[2:]}"
        if name != OUTSIDE and beginning not in names:
            raise CompressError(f"task {spec.name}: `labels` has {name!r} without {beginning!r}; list both")


def _read(rows: Rows, names: tuple[str, ...]) -> np.ndarray:
    labels = label_ids(rows, names)
    check_words(rows.place, labels, names)
    return labels


def label_ids(rows: Rows, names: tuple[str, ...]) -> np.ndarray:
    """Return object [text] of int32 [word, 3]: label id, start and end in characters."""
    ids = {name: index for index, name in enumerate(names)}
    labels, problems = np.empty(len(rows), dtype=object), []
    for row, words in enumerate(rows.labels):
        for position, (name, _, _) in enumerate(words):
            if name not in ids:
                problems.append(rows.of_word(row, position, unknown_label(name, names)))
        labels[row] = np.array([(ids.get(n, 0), *span) for n, *span in words], np.int32).reshape(-1, 3)
    refuse(rows.place, rows.unit, problems, rows.remedy)
    return labels


def check_words(place: str, labels: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise `CompressError` if no text has a word, or no word an entity, so that nothing can be learnt or scored."""
    present = _present_labels(labels)
    if not present:
        raise CompressError(f"{place}: no text has a word")
    if are_entities(names) and present == {names.index(OUTSIDE)}:
        words = len(_gold(labels))
        raise CompressError(f"{place}: all {words:,} words have the label {OUTSIDE!r}; expected entities among them")


def _applicable_metrics(metrics: tuple[MetricName, ...], names: tuple[str, ...]) -> tuple[MetricName, ...]:
    return tuple(metric for metric in metrics if metric not in ENTITY_METRICS or are_entities(names))


def _entity_types(
    outputs: np.ndarray, gold: np.ndarray, names: tuple[str, ...], metrics: tuple[MetricName, ...]
) -> dict[str, TypeScore]:
    """Return the scores of each entity type, counted as by the task's first entity metric."""
    strict = entity_metric(metrics) == "entity_f1_strict"
    return type_scores(outputs, gold, names, strict=strict) if are_entities(names) else {}


def _entity_flips(
    fp32: np.ndarray, other: np.ndarray, gold: np.ndarray, names: tuple[str, ...]
) -> tuple[int, int] | None:
    return entity_flips(fp32, other, gold, names) if are_entities(names) else None


def _gold(labels: np.ndarray) -> np.ndarray:
    return concatenate_labels([words[:, 0] for words in labels])


def _label_ids(gold: np.ndarray) -> np.ndarray:
    return split_labels(gold)[0]


def _present_labels(labels: np.ndarray) -> set[int]:
    return set(np.unique(_label_ids(_gold(labels))).tolist())


def _strata(labels: np.ndarray) -> list[int]:
    """Return for each text its label that the fewest texts have, as these have the fewest to spare; -1 if it has no word."""
    label_sets = [np.unique(words[:, 0]) for words in labels]
    texts = np.bincount(np.concatenate([np.zeros(0, np.int64), *label_sets]).astype(np.int64), minlength=1)
    return [int(ids[texts[ids].argmin()]) if len(ids) else -1 for ids in label_sets]


def _constant(train: np.ndarray, names: tuple[str, ...], gold: np.ndarray) -> np.ndarray:
    return CLASSIFICATION.constant_baseline.outputs(_label_ids(_gold(train)), names, gold)


def _format_label(label: Any, names: tuple[str, ...]) -> str:
    return names[int(_label_ids(np.array(label)))]


def _fits(array: np.ndarray, names: tuple[str, ...]) -> bool:
    return array.ndim == 1 and bool((_label_ids(array) < len(names)).all())


TAGGING = TaskKind(
    labels=Labels(
        prepare=parse_tagged,
        names=_label_names,
        read=_read,
        description="a label for each word",
        format=_format_label,
        present=_present_labels,
        strata=_strata,
        vary=lambda labels: len(_present_labels(labels)) > 1,
        gold=lambda labels, texts: _gold(labels),
    ),
    scoring=Scoring(
        headline=lambda metrics, positive, names: TagsHeadline(metrics, names),
        applicable=_applicable_metrics,
        entity_types=_entity_types,
    ),
    constant_baseline=ConstantBaseline(outputs=_constant, description="always giving the most frequent label"),
    answers=CLASSIFICATION.answers,
    decisions=Decisions(
        confidence=largest_probability,
        correct=lambda outputs, gold: CLASSIFICATION.answers(outputs) == _label_ids(gold),
    ),
    stored=replace(
        CLASSIFICATION.stored,
        fits=_fits,
        dtype=lambda names: np.dtype(np.int8 if len(names) <= 128 else np.int16),  # signed, for gold
    ),
    fidelity=replace(CLASSIFICATION.fidelity, entity_flips=_entity_flips),
    ensemble=TeacherEnsemble(
        mean=mean_of_probabilities,
        fit_temperature=lambda outputs, gold: fit_temperature(outputs, _label_ids(gold)),
    ),
)
