"""Read and check a task's data: train and tuning splits, separate from the reported ones; and their fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import CompressError
from ...metrics.ranks import scored_queries
from ...results import ALSO_IN
from ...spec.kinds import KINDS
from ...spec.task import TaskSpec
from ..data import ReportedData, Split, TrainingData
from ..kinds import TASK_KINDS
from ..reading.columns import Rows
from ..reading.plain_text import is_plain_text
from ..sources.glue import completeness, is_glue
from ..sources.hub import is_cached
from ..sources.rows import OWN, Origin
from ..sources.unread import unread_note
from .checks import to_split
from .contradictions import contradicting_labels
from .copied_rows import check_reported
from .label_notes import absent_labels, alike_labels, single_labels, tuning_labels
from .tuning import carve, normalize_texts


def fingerprint(spec: TaskSpec, folder: Path | None, data_dir: Path | None, tuning: Path | None = None) -> str:
    """Return a SHA-256 that changes with any byte of the data and any relevant field of the spec; parses nothing."""
    return Origin(spec, folder, data_dir, tuning).fingerprint()


def load_training(
    spec: TaskSpec, folder: Path | None, data_dir: Path | None, tuning: Path | None = None
) -> TrainingData:
    """Return the train and tuning splits.

    `folder`: where a task file's relative paths start; `data_dir`: GLUE's folders, or a saved `datasets` folder; `tuning`: a file for the
    tuning split, in the format of the task's own. The reported splits are read and checked too, so that a bad row is found before training,
    and discarded. Raises `CompressError` naming file and line for anything that cannot be used.
    """
    origin = Origin(spec, folder, data_dir, tuning)
    origin.check_distinct()
    _check_tunes(spec, origin.paths)
    rows, notes = origin.read(lambda name: True)
    rows = _prepare_rows(spec, rows)
    names = TASK_KINDS[spec.kind].labels.names(spec, rows["train"])
    splits = _to_splits(spec, rows, names)
    if _unanswerable(spec, rows["train"]):
        splits = {name: replace(split, unanswerable=True) for name, split in splits.items()}
    counts = {name: len(split) for name, split in splits.items()}
    train = splits.pop("train")
    own = splits.pop("tuning", None)
    if is_glue(spec):
        notes += completeness(spec, counts)
    notes += [f"{name}: {note}" for name, part in rows.items() for note in part.notes]
    plain = "train" in origin.paths and is_plain_text(spec.kind, origin.paths["train"])
    tuned = {} if own is None else {"tuning": own}
    notes += absent_labels(spec, train, names) + alike_labels(spec, train, names) + single_labels(spec, names, splits)
    notes += contradicting_labels(spec, rows["train"], train, names)
    notes += _empty_texts({"train": train, **tuned, **splits})
    notes += _check_shared(spec, rows, train, splits, plain=plain)
    whole, names_tuning = train, own is not None
    if own is None:
        carved = carve(spec, train, rows["train"].place)
        train, own = train.select(carved.train), train.select(carved.tuning)
        notes += carved.notes
        _check_held_out(spec, rows["train"].place, own)
    else:
        grouped = KINDS[spec.kind].grouped is not None
        notes += _check_tuning(rows["tuning"].place, own, train, splits, grouped=grouped, plain=plain)
        own = _without_reported(rows["tuning"].place, own, splits, grouped=grouped or own.labels_spans)
        _check_left(spec, rows["tuning"].place, own)
    notes += tuning_labels(spec, names, whole, own, own=names_tuning)
    unread = rows["train"].unread
    advice = () if unread is None else (unread_note(rows["train"].place, unread, spec.text[0]),)
    return TrainingData(spec, names, train, own, origin.location[0], tuple(notes), origin.fingerprint(), advice)


def load_reported(
    spec: TaskSpec, folder: Path | None, data_dir: Path | None, tuning: Path | None = None
) -> ReportedData:
    """Return the splits that scores are reported on. Raises like `load_training`, and has the same fingerprint for the same arguments."""
    origin = Origin(spec, folder, data_dir, tuning)
    needs_train = spec.known_labels is None or KINDS[spec.kind].unit == "question"  # known only from train
    rows = _prepare_rows(spec, origin.read(lambda name: name not in OWN or (name == "train" and needs_train))[0])
    names = TASK_KINDS[spec.kind].labels.names(spec, rows["train"] if "train" in rows else next(iter(rows.values())))
    reported = {name: part for name, part in rows.items() if name not in OWN}
    splits = _to_splits(spec, reported, names)
    if "train" in rows and _unanswerable(spec, rows["train"]):
        splits = {name: replace(split, unanswerable=True) for name, split in splits.items()}
    return ReportedData(spec, names, splits, origin.fingerprint())


def reported_rows(
    texts: Split, spec: TaskSpec, folder: Path | None, data_dir: Path | None
) -> dict[str, tuple[int, ...]]:
    """Return for each reported split the rows of `texts`, from 0, that occur in it, ignoring case and spacing."""
    rows = normalize_texts(texts)
    matches = {}
    for name, split in load_reported(spec, folder, data_dir).splits.items():
        alone = split.separate_texts and len(texts.texts) == 1
        known = {row for part in (split.columns() if alone else (split,)) for row in normalize_texts(part)}
        matches[name] = tuple(number for number, row in enumerate(rows) if row in known)
    return matches


def is_at_hand(spec: TaskSpec, folder: Path | None, data_dir: Path | None) -> bool:
    """Whether the data can be read without the hub."""
    return Origin(spec, folder, data_dir).location != ("hub", None) or is_cached(spec)


def check_data_dir(data_dir: Path | None, specs: Sequence[TaskSpec]) -> None:
    """Raise `CompressError` if `data_dir` is not a folder, or none of these tasks reads it."""
    if data_dir is None:
        return
    if not data_dir.is_dir():
        raise CompressError(f"{data_dir}: no such folder; --data-dir is the folder that holds the task's data")
    if not any(spec.hub for spec in specs):
        names = ", ".join(spec.name for spec in specs)
        raise CompressError(
            f"--data-dir names data, and no task here reads it ({names}: data of their own); leave it out"
        )


def _check_tunes(spec: TaskSpec, paths: Mapping[str, Path]) -> None:
    """Raise `CompressError` if train is plain text, which no tuning split can be split from, and no tuning file is given."""
    if "train" in paths and is_plain_text(spec.kind, paths["train"]) and "tuning" not in paths:
        raise CompressError(
            f"{paths['train']}: plain text has no scores to choose checkpoints by; name a file of pairs with scores with --tuning, or "
            "as `files.tuning` of the task file"
        )


def _prepare_rows(spec: TaskSpec, rows: dict[str, Rows]) -> dict[str, Rows]:
    if _trains_on_texts_alone(spec, rows):
        rows = rows | {"train": replace(rows["train"], labels=[0.0] * len(rows["train"]))}
    return {name: TASK_KINDS[spec.kind].labels.prepare(spec, part) for name, part in rows.items()}


def _trains_on_texts_alone(spec: TaskSpec, rows: dict[str, Rows]) -> bool:
    """Whether nothing reads the labels of train: no loss does, and no tuning split is split from it."""
    return not KINDS[spec.kind].learnt and {"train", "tuning"} <= rows.keys()


def _to_splits(spec: TaskSpec, rows: dict[str, Rows], names: tuple[str, ...]) -> dict[str, Split]:
    labelled = not _trains_on_texts_alone(spec, rows)
    return {
        name: to_split(spec, part, names, training=labelled and name == "train", scored=name != "train")
        for name, part in rows.items()
    }


def _unanswerable(spec: TaskSpec, train: Rows) -> bool:
    return KINDS[spec.kind].unit == "question" and not all(train.labels)


def _check_left(spec: TaskSpec, place: str, tuning: Split) -> None:
    """Raise `CompressError` if no model can be scored on what `_without_reported` leaves of a tuning file."""
    kind = TASK_KINDS[spec.kind]
    if KINDS[spec.kind].grouped is not None and not scored_queries(tuning.labels):
        raise CompressError(
            f"{place}: no query outside the reported splits has a relevant passage; expected other queries"
        )
    if kind.scoring.by_correlation and not kind.labels.vary(tuning.labels):
        raise CompressError(
            f"{place}: its texts outside the reported splits all have the score {tuning.labels[0]:g}; expected "
            "other scores, too"
        )


def _check_held_out(spec: TaskSpec, place: str, tuning: Split) -> None:
    """Raise `CompressError` if all models would have the same score on the tuning split. A single example is accepted: a train of a few
    examples cannot spare more."""
    kind = TASK_KINDS[spec.kind]
    if kind.scoring.by_correlation and len(tuning) > 1 and not kind.labels.vary(tuning.labels):
        raise CompressError(
            f"{place}: the {len(tuning):,} examples held out for tuning all have the score {tuning.labels[0]:g}; name a file of examples "
            "with other scores, too, with --tuning, or as `files.tuning` of the task file"
        )


def _empty_texts(splits: dict[str, Split]) -> list[str]:
    """Return a note on examples without text in any column, which all get the same answer."""
    counts = {name: sum(map(_is_blank, normalize_texts(split))) for name, split in splits.items()}
    parts = [f"{count:,} of {len(splits[name]):,} {name}" for name, count in counts.items() if count]
    if not parts:
        return []
    listed = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
    return [f"{listed} texts {'is' if sum(counts.values()) == 1 else 'are'} empty"]


def _is_blank(key: str) -> bool:
    """Whether an example from `normalize_texts` has no text in any column."""
    return not key.strip()


def _check_shared(
    spec: TaskSpec, rows: dict[str, Rows], train: Split, reported: dict[str, Split], *, plain: bool
) -> list[str]:
    """Return notes on reported examples whose texts are also in train: scores on those say nothing about new texts. Raises
    `CompressError` as `check_reported` does. `plain`: train is plain text."""
    count = _counter(train, plain=plain)
    shared = {name: count(split) for name, split in reported.items()}
    if not _trains_on_texts_alone(spec, rows):
        suspected = {name: split for name, split in reported.items() if 2 * shared[name] > len(split)}
        check_reported(train, suspected, {name: part.place for name, part in rows.items()})
    return [
        f"{count:,} of {len(reported[name]):,} {name} texts {ALSO_IN} train" for name, count in shared.items() if count
    ]


def _check_tuning(
    place: str, tuning: Split, train: Split, reported: dict[str, Split], *, grouped: bool, plain: bool
) -> list[str]:
    """Return notes on texts of the tuning file that also occur in other splits; for reported ones, questions on the same contexts count
    too. Raises `CompressError` if that is the case for more than half. `grouped`: as in `_without_reported`; `plain`: train is
    plain text."""
    notes = []
    for name, split in {"train": train, **reported}.items():
        asks = tuning.labels_spans and name != "train"
        learnt = name == "train"
        shared = _counter(split, grouped=grouped or asks, plain=plain and learnt, empty=not learnt)(tuning)
        texts, occur = ("questions", "are on contexts of") if asks else ("texts", "are also in")
        if 2 * shared > len(tuning):
            use = "models learn by heart" if learnt else "scores are reported on"
            raise CompressError(
                f"{place}: {shared:,} of its {len(tuning):,} {texts} {occur} {name}, which {use}; "
                "expected other examples to choose checkpoints and settings on"
            )
        if shared:
            left_out = "" if learnt else ", and are left out"
            also = "are on contexts of" if asks else ALSO_IN
            notes.append(f"{shared:,} of {len(tuning):,} tuning {texts} {also} {name}{left_out}")
    return notes


def _counter(
    known: Split, *, grouped: bool = False, plain: bool = False, empty: bool = False
) -> Callable[[Split], int]:
    """Return a function that counts a split's examples that also occur in `known`; if that is plain text, without pairs, those whose texts
    all occur. `empty`: count examples without any text. `grouped`: as in `_without_reported`."""
    if not plain:
        keys = {key for key in _keys(known, grouped) if empty or not _is_blank(key)}
        return lambda split: sum(key in keys for key in _keys(split, grouped))
    known_texts = {text for column in known.columns() for text in normalize_texts(column)}

    def count(split: Split) -> int:
        examples = zip(*map(normalize_texts, split.columns()), strict=True)
        return sum(known_texts.issuperset(texts) for texts in examples)

    return count


def _without_reported(place: str, tuning: Split, reported: dict[str, Split], *, grouped: bool) -> Split:
    """Return the examples whose text is in no reported split, so that scores are reported on texts that nothing was chosen by. `grouped`:
    those whose query, or context, is in no reported split."""
    known = {row for split in reported.values() for row in _keys(split, grouped)}
    kept = np.flatnonzero([row not in known for row in _keys(tuning, grouped)])
    if not len(kept):
        occur = "questions are on contexts of" if tuning.labels_spans else "texts are also in"
        raise CompressError(f"{place}: all of its {occur} splits that scores are reported on; expected other examples")
    return tuning.select(kept)


def _keys(split: Split, grouped: bool) -> list[str]:
    """Return what identifies an example in another split."""
    if not grouped:
        return normalize_texts(split)
    return normalize_texts(Split(split.texts[1:] if split.labels_spans else split.texts[:1], split.labels))
