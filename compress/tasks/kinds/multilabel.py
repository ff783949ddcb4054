"""Any number of named labels per example, each an independent decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import CompressError, brief
from ...files.tabular import flag, is_vector, label_list
from ...metrics import LabelsHeadline
from ...runtime.kinds.multilabel import sigmoid
from ...spec.task import TaskSpec
from ..ensembles import fit_temperature, mean_of_decisions
from ..label_thresholds import label_thresholds
from ..reading.columns import Rows
from ..reading.tables import refuse
from .classification import MOST_UNLISTED_LABELS, check_unicode, declared_names, natural, unknown_label
from .kind import ConstantBaseline, Decisions, FidelityMeasures, Labels, Scoring, StoredForm, TaskKind, TeacherEnsemble

NONE = "(none)"  # text of an answer without labels
_TINY = 1e-30


def _label_names(spec: TaskSpec, train: Rows) -> tuple[str, ...]:
    """Return the columns in the spec, its `labels`, those that the data set declares, or the sorted labels of the training lists."""
    return declared_names(spec, train) or listed_names(str(spec.label), train)


def listed_names(column: str, train: Rows, *, most: int | None = MOST_UNLISTED_LABELS) -> tuple[str, ...]:
    """Return the distinct labels in the lists of `column`, numbers first, then alphabetically. Raises `CompressError` if there are more
    than `most`, probably by mistake, or fewer than two, if a value is not a list, or if the column is of 0 and 1."""
    names = tuple(sorted({name for row_names in _lists(train) for name in row_names}, key=natural))
    if most is not None and len(names) > most:
        raise CompressError(
            f"{train.place}: column {column!r} has {len(names):,} different labels; list them under `labels` if "
            "they are intended"
        )
    check_unicode(train.place, column, names)
    if len(names) < 2:
        actual = f"found {list(names)}" if names else "found none"
        raise CompressError(
            f"{train.place}: column {column!r}: expected lists of at least two different labels, {actual}"
        )
    if _are_flags(train.labels, names):
        raise CompressError(
            f"{train.place}: column {column!r} is of {' and '.join(names)}, yes or no to one label; name the columns of all labels, as "
            "--label a,b, or `label: [a, b]` in a task file, or take the kind classification"
        )
    return names


def _are_flags(values: Sequence[Any], names: Sequence[str]) -> bool:
    """Whether single texts say yes or no. In lists, and among several labels, such names are labels."""
    single = all(isinstance(value, str) and not value.lstrip().startswith("[") for value in values)
    known = {flag(name) for name in names}
    return single and known == {False, True} and all(len(label_list(value) or ()) < 2 for value in values)


def _lists(rows: Rows) -> list[list[str]]:
    """Return the label names of each example. Raises `CompressError` if a value is not a list, or lists have 0 or 1 for each label."""
    lists = [label_list(value) for value in rows.labels]
    wrong = [(n, v) for n, v, names in zip(rows.numbers, rows.labels, lists, strict=True) if names is None]
    refuse(rows.place, rows.unit, [(n, f"expected a list of labels, found {brief(v)}") for n, v in wrong])
    filled = [names or [] for names in lists]
    if _are_vectors(filled):
        problem = (
            f"expected a list of the labels that the text has, found {brief(rows.labels[0])}: 0 or 1 for each label"
        )
        remedy = "; write lists of names, or a column of 0 and 1 for each label, named as --label a,b, or `label: [a, b]` in a task file"
        refuse(rows.place, rows.unit, [(rows.numbers[0], problem)], remedy)
    return filled


def _are_vectors(lists: Sequence[Sequence[str]]) -> bool:
    """Whether every list says yes or no to each label in turn."""
    sizes, every = set(map(len, lists)), {name.removesuffix(".0") for names in lists for name in names}
    return len(sizes) == 1 and None not in map(flag, every) and any(map(is_vector, lists))


def _read(rows: Rows, names: tuple[str, ...]) -> np.ndarray:
    """Return uint8 [example, label], from lists or from one column of 0 and 1 for each label."""
    if any(isinstance(value, tuple) for value in rows.labels):
        return _read_flags(rows, names)
    ids = {name: index for index, name in enumerate(names)}
    labels, problems = np.zeros((len(rows), len(names)), np.uint8), []
    for row, (number, row_names) in enumerate(zip(rows.numbers, _lists(rows), strict=True)):
        problems += [(number, unknown_label(name, names)) for name in row_names if name not in ids]
        labels[row, [ids[name] for name in row_names if name in ids]] = 1
    refuse(rows.place, rows.unit, problems, rows.remedy)
    return labels


def _read_flags(rows: Rows, names: tuple[str, ...]) -> np.ndarray:
    labels, problems = np.zeros((len(rows), len(names)), np.uint8), []
    for row, (number, values) in enumerate(zip(rows.numbers, rows.labels, strict=True)):
        flags = [flag(value) for value in values]
        problems += [
            (number, f"{name}: expected 0 or 1, found {brief(value)}")
            for name, value, known in zip(names, values, flags, strict=True)
            if known is None
        ]
        labels[row] = [bool(known) for known in flags]
    refuse(rows.place, rows.unit, problems)
    return labels


def _format_label(label: Any, names: tuple[str, ...]) -> str:
    return ", ".join(name for name, present in zip(names, label, strict=True) if present) or NONE


def _strata(labels: np.ndarray) -> list[int]:
    """Return the rarest label of each example, which has the fewest examples to spare; -1 if it has none."""
    sizes = labels.sum(axis=0)
    rarest = np.where(labels > 0, sizes, len(labels) + 1).argmin(axis=1)
    return np.where(labels.any(axis=1), rarest, -1).tolist()


def _constant(train: np.ndarray, names: tuple[str, ...], gold: np.ndarray) -> np.ndarray:
    """Return outputs that give the most frequent labels, as many as maximize micro F1 on train, ordered by frequency."""
    shares = train.mean(axis=0)
    ordered = np.sort(shares)[::-1]
    scores = 2 * ordered.cumsum() / (np.arange(1, len(names) + 1) + shares.sum())
    last = int(scores.argmax())
    following = ordered[last + 1] if last + 1 < len(names) else 0.0
    return shares - (ordered[last] + following) / 2


def _predicted_labels(outputs: np.ndarray) -> np.ndarray:
    return (outputs > 0).astype(np.uint8)


def _confidence(outputs: np.ndarray) -> np.ndarray:
    """Return the probability that all labels are as predicted, if they are independent."""
    return np.exp(np.log(sigmoid(np.abs(outputs))).sum(axis=1))


def _divergence(fp32: np.ndarray, other: np.ndarray) -> float:
    """Return KL(fp32 ‖ other) in nats, summed over labels, the mean over texts."""
    total = 0.0
    for expected, actual in ((sigmoid(fp32), sigmoid(other)), (sigmoid(-fp32), sigmoid(-other))):
        total += float((expected * np.log((expected + _TINY) / (actual + _TINY))).sum(axis=1).mean())
    return total


def _fits(array: np.ndarray, names: tuple[str, ...]) -> bool:
    return array.ndim == 2 and array.shape[1] == len(names)


def _fit_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """Return one temperature for all labels; each is a choice between two classes with logits 0 and its own."""
    return fit_temperature(np.stack([np.zeros(logits.size), logits.ravel()], axis=1), labels.ravel().astype(int))


MULTILABEL = TaskKind(
    labels=Labels(
        names=_label_names,
        read=_read,
        description="labels",
        format=_format_label,
        present=lambda labels: set(np.flatnonzero(labels.any(axis=0)).tolist()),
        strata=_strata,
    ),
    scoring=Scoring(headline=lambda metrics, positive, names: LabelsHeadline(metrics)),
    constant_baseline=ConstantBaseline(outputs=_constant, description="always giving the most frequent labels"),
    answers=_predicted_labels,
    fit_threshold=label_thresholds,
    decisions=Decisions(
        confidence=_confidence, correct=lambda outputs, gold: (_predicted_labels(outputs) == gold).all(axis=1)
    ),
    stored=StoredForm(
        from_outputs=lambda outputs: outputs,
        to_outputs=lambda stored, names: stored,
        fits=_fits,
        dtype=lambda names: np.dtype(np.float32),
    ),
    fidelity=FidelityMeasures(divergence=_divergence),
    ensemble=TeacherEnsemble(mean=mean_of_decisions, fit_temperature=_fit_temperature),
)
