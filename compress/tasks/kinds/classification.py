"""One of several named classes per example."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...errors import CompressError, brief, encoded_otherwise
from ...fields import NOT_UNICODE, is_unicode
from ...metrics import ClassHeadline
from ...runtime.kinds.classification import softmax
from ...spec.task import TaskSpec
from ..ensembles import fit_temperature, mean_of_probabilities
from ..reading.columns import Rows
from ..reading.tables import refuse
from .kind import ConstantBaseline, Decisions, FidelityMeasures, Labels, Scoring, StoredForm, TaskKind, TeacherEnsemble

MOST_UNLISTED_LABELS = 100  # more distinct values are probably scores or ids, not classes
_MOST_DIGITS = 4000  # of numbers that names are sorted by; Python parses at most 4,300
_TINY = 1e-30


def _label_names(spec: TaskSpec, train: Rows) -> tuple[str, ...]:
    """Return the spec's `labels`, those that the data set declares, or the sorted values of the training column."""
    names = declared_names(spec, train)
    if names is None:
        refuse(train.place, train.unit, unlabelled_rows(str(spec.label), train.numbers, train.labels))
        refuse(train.place, train.unit, nested_rows(str(spec.label), train.numbers, train.labels))
        values = set(train.names())
        if len(values) > MOST_UNLISTED_LABELS:
            raise CompressError(
                f"{train.place}: column {spec.label!r} has {len(values):,} different values; "
                "list them under `labels` if they are classes, or set `kind: regression`"
            )
        names = tuple(sorted(values, key=natural))
        check_unicode(train.place, spec.label, names)
    _check_positive(spec, names)
    return names


def declared_names(spec: TaskSpec, train: Rows) -> tuple[str, ...] | None:
    """Return the label names of the task or the data set, checked; None if only the labels themselves provide them."""
    names = spec.known_labels or train.declared
    if names is not None:
        check_unicode(train.place, spec.label, names)
    return names


def unlabelled_rows(column: str, numbers: Iterable[int | str], values: Iterable[Any]) -> list[tuple[int | str, str]]:
    """Return the rows without a label, for `refuse`. Non-finite floats count as missing: Parquet and JSON use NaN for that."""
    problems = []
    for number, value in zip(numbers, values, strict=True):
        if isinstance(value, float) and not math.isfinite(value):
            problems.append((number, f"{column}: no label, found {value}"))
        elif value is None or not str(value).strip():
            problems.append((number, f"{column}: no label"))
    return problems


def nested_rows(column: str, numbers: Iterable[int | str], values: Iterable[Any]) -> list[tuple[int | str, str]]:
    """Return the rows whose value is not one label, for `refuse`: a list, an object or bytes, whose form in Python would be its name."""
    problems = []
    for number, value in zip(numbers, values, strict=True):
        if isinstance(value, list | tuple | dict | bytes):
            hint = "; lists of labels are for the kind multilabel" if isinstance(value, list | tuple) else ""
            problems.append((number, f"{column}: expected one label, as text or a number, found {brief(value)}{hint}"))
    return problems


def check_unicode(place: str, column: str | tuple[str, ...], names: Iterable[str]) -> None:
    """Raise `CompressError` for a name that is not valid text."""
    if not all(map(is_unicode, names)):
        raise CompressError(f"{place}: column {column!r}: {NOT_UNICODE}")


def natural(name: str) -> tuple[bool, int, str]:
    """Return a sort key for label names: whole numbers by value, then all others by their characters."""
    whole = name.removeprefix("-").isdecimal() and len(name) <= _MOST_DIGITS
    return (not whole, int(name) if whole else 0, name)


def _check_positive(spec: TaskSpec, names: tuple[str, ...]) -> None:
    if spec.positive is not None and spec.positive not in names:
        raise CompressError(f"task {spec.name}: `positive` is {spec.positive!r}, which is not among {list(names)}")
    if "f1" in spec.metrics and spec.positive is None and len(names) > 2:
        raise CompressError(
            f"task {spec.name}: metric `f1` with {len(names)} labels needs `positive` (or take `f1_macro`)"
        )


def _class_ids(rows: Rows, names: tuple[str, ...]) -> np.ndarray:
    ids = {name: index for index, name in enumerate(names)}
    row_names = rows.names()
    wrong = [(n, name) for n, name in zip(rows.numbers, row_names, strict=True) if name not in ids]
    refuse(rows.place, rows.unit, [(n, unknown_label(name, names)) for n, name in wrong], rows.remedy)
    return np.array([ids[name] for name in row_names], dtype=np.int64)


def unknown_label(name: str, names: tuple[str, ...]) -> str:
    hidden = " (-1 marks hidden labels: this split cannot be scored)" if name == "-1" else ""
    known = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    if not name.strip():
        return f"no label; known: {known}"
    twin = encoded_otherwise(name, names)
    if twin is not None:
        return f"unknown label {name!a}: it looks like {twin!a}, and its characters are encoded in another way; known: {known}"
    near = next((other for other in names if other.casefold() == name.casefold()), None)
    near = near or next(iter(difflib.get_close_matches(name, names, n=1)), None)
    if near is not None:
        return f"unknown label {brief(name)}; did you mean {brief(near)}? known: {known}"
    return f"unknown label {brief(name)}{hidden}; known: {known}"


def _one_hot(ids: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Return float32 [..., class]: 1 at the class, 0 elsewhere."""
    return np.eye(len(names), dtype=np.float32)[ids]


def _divergence(fp32: np.ndarray, other: np.ndarray) -> float:
    """Return KL(fp32 ‖ other) in nats, the mean over texts."""
    expected, actual = softmax(fp32), softmax(other)
    return float((expected * np.log((expected + _TINY) / (actual + _TINY))).sum(1).mean())


def _predicted_classes(outputs: np.ndarray) -> np.ndarray:
    return outputs.argmax(axis=1)


def largest_probability(outputs: np.ndarray) -> np.ndarray:
    return softmax(outputs).max(axis=1)


CLASSIFICATION = TaskKind(
    labels=Labels(
        names=_label_names,
        read=_class_ids,
        description="a class",
        format=lambda label, names: names[int(label)],
        present=lambda labels: set(labels.tolist()),
        strata=lambda labels: labels.tolist(),
    ),
    scoring=Scoring(headline=lambda metrics, positive, names: ClassHeadline(metrics, positive)),
    constant_baseline=ConstantBaseline(
        outputs=lambda train, names, gold: _one_hot(np.asarray(np.bincount(train).argmax()), names),
        description="always answering the majority class",
    ),
    answers=_predicted_classes,
    decisions=Decisions(
        confidence=largest_probability, correct=lambda outputs, gold: _predicted_classes(outputs) == gold
    ),
    stored=StoredForm(
        from_outputs=_predicted_classes,
        to_outputs=_one_hot,
        fits=lambda array, names: array.ndim == 1 and bool(((array >= 0) & (array < len(names))).all()),
        dtype=lambda names: np.dtype(np.uint8 if len(names) <= 256 else np.uint16),
    ),
    fidelity=FidelityMeasures(divergence=_divergence),
    ensemble=TeacherEnsemble(mean=mean_of_probabilities, fit_temperature=fit_temperature),
)
