"""Each model's answer for each example: from a run's logits, or from the compact copy in a report's folder.

The copy has no texts. For each task and split it has a matrix [row, example] of class ids, for a regression of scores; [row, example,
label] of a multilabel task's logits; [row, word] of labels of words; [row, example, 2] of a ranking's scores and 0; [row, question, ending]
of scores of endings; or [row, question, 6] of answers and their scores. Row 0 is gold (`Labels.gold`), and models with the same answers
share a row. A matrix of class ids comes with the lengths of its examples. Scores, differences and intervals are always computed from such
answers, so that a folder with the copy gives the same page as the runs did. Two machines give a run the same name, so a name alone does not
identify a file: the result next to it must be that of the run.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as BadData

import numpy as np

from ...errors import CompressError
from ...files.atomic import write_bytes
from ...results import PER_EXAMPLE, PREDICTIONS, RESULT, SEVERAL, TOKENS, Result, read_results
from ...tasks import TASK_KINDS
from .labels import machine_of

# Errors when reading a damaged file of arrays.
_BROKEN = (
    *(OSError, ValueError, TypeError, BadZipFile, BadData, EOFError, RuntimeError, MemoryError, OverflowError),
    struct.error,
)
_INDEX = "index"  # JSON: name of a matrix -> run, with its identity if two have the same name -> model -> row
Index = dict[str, dict[str, dict[str, int]]]


def find_predictions(run: Result, folders: Sequence[Path]) -> Path | None:
    """Return the file with the answers of `run`: its own in one of `folders`, as `own_file` finds it, or else a report's copy.

    `folders`: run directories, folders of them, reports, files in these, or patterns for such. Raises `CompressError` for a copy that
    cannot be read.
    """
    copies = (place for place in _prediction_folders(folders) if (place / PER_EXAMPLE).is_file())
    held = (place / PER_EXAMPLE for place in copies if _has_copy(place, run))
    return own_file(run, folders, PREDICTIONS) or next(held, None)


def own_file(run: Result, folders: Sequence[Path], name: str) -> Path | None:
    """Return the file `name` in the directory of `run`, if that is one of `folders` or in one and its result is this one."""
    # resolved: `.` has no name, and a link has another
    own = (place if place.resolve().name == run.run else place / run.run for place in _prediction_folders(folders))
    wanted = identity(run)
    return next((place / name for place in own if (place / name).is_file() and wanted in _results_in(place)), None)


def identity(run: Result) -> str:
    """Return a hash that differs for a run of the same name made on another machine, or made again. It does not depend on times."""
    scores = {model.predictions: model.scores for model in run.models}
    return hashlib.sha256(json.dumps([run.run, machine_of(run), scores], sort_keys=True).encode()).hexdigest()[:12]


def _has_copy(place: Path, run: Result) -> bool:
    """Whether a copy has the run's answers. A name without identity is that of the result next to the copy; an ablation has none."""
    rows, known = _row_numbers(_index(place / PER_EXAMPLE), run, run.task.splits[0]), _results_in(place)
    return _marked_name(run) in rows or (run.run in rows and (not known or identity(run) in known))


def _results_in(place: Path) -> set[str]:
    """Return the identities of a run directory's result, or of a report's; empty if it cannot be read."""
    files = [file for name in (RESULT, SEVERAL) if (file := place / name).is_file()]
    stats = [(file, file.stat()) for file in files]
    return {each for file, stat in stats for each in _identities(file, stat.st_ino, stat.st_mtime_ns, stat.st_size)}


@lru_cache(maxsize=512)
def _identities(file: Path, *_state: int) -> frozenset[str]:
    """Return the identities of the results in a file, which is read again if its state has changed."""
    try:
        return frozenset(map(identity, read_results(file)))
    except CompressError:
        return frozenset()


def _prediction_folders(folders: Sequence[Path]) -> list[Path]:
    return [path if path.is_dir() else path.parent for folder in folders for path in _matching(folder)]


def _matching(folder: Path) -> list[Path]:
    return [folder] if folder.exists() else [Path(name) for name in sorted(glob.glob(str(folder)))]  # noqa: PTH207


def load_answers(
    file: Path, run: Result, models: Sequence[str], split: str | None = None
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return (outputs, gold) of `models`, array names in the run, on `split` (default: the first reported one).

    An output gives the same answers and scores as the model's own: 1 at the chosen class and 0 elsewhere, [example, class]; for a
    regression the scores, [example]; for a multilabel task the logits, [example, label]. If words are labelled, these are the examples.

    Raises `CompressError` naming the file when it lacks them, or has them for another number of examples.
    """
    answers, gold = _answers(file, run, models, split or run.task.splits[0])
    wrong = [name for name, answer in zip(models, answers, strict=True) if answer.shape != gold.shape]
    if wrong or not gold.ndim:
        raise CompressError(f"{file}: {', '.join(wrong)}: not an answer for each gold label; run the recipe again")
    kind, names = TASK_KINDS[run.task.kind], run.task.labels
    ids = np.issubdtype(_stored_type(run), np.integer)  # gold alone may have another form
    if not all(kind.stored.fits(each, names) for each in (*answers, gold)) or any(
        ids and (each < 0).any() for each in answers
    ):
        raise CompressError(f"{file}: has other classes than the {len(names)} of {run.task.name}; run the recipe again")
    return [kind.stored.to_outputs(answer, names) for answer in answers], gold


def _answers(file: Path, run: Result, models: Sequence[str], split: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the stored form of the outputs: class ids or scores, [example], or logits, [example, label]."""
    kind, stored = TASK_KINDS[run.task.kind], _stored_type(run)
    wide: Any = np.int64 if np.issubdtype(stored, np.integer) else stored
    if file.name != PREDICTIONS:  # a copy
        held = _row_numbers(_index(file), run, split)
        rows = held.get(_marked_name(run), held.get(run.run, {}))
        (matrix,) = _arrays(file, [_name(run, split)])
        if not all(0 < rows.get(model, 0) < len(matrix) for model in models):
            raise CompressError(
                f"{file}: expected answers of {', '.join(models)} of {run.run}; make the report from its run"
            )
        _check_numbers(file, [matrix])
        return [matrix[rows[model]].astype(wide) for model in models], matrix[0].astype(wide)
    *logits, gold = _arrays(file, [*(f"{model}/{split}" for model in models), f"gold/{split}"])
    _check_numbers(file, [*logits, gold])
    outputs = kind.output_count(run.task.labels)
    if any(array.ndim != 2 or array.shape[1] != (outputs or array.shape[1]) for array in logits):
        raise CompressError(f"{file}: expected logits [example, output] of {run.task.name}; run the recipe again")
    answers = [kind.stored.from_outputs(array) for array in logits]
    return answers, _gold_like_answers(gold.astype(wide), answers)


def _gold_like_answers(gold: np.ndarray, answers: Sequence[np.ndarray]) -> np.ndarray:
    """Return gold in the shape of answers, for a matrix of both: if an example has one number and an answer several, it is repeated."""
    wide = answers[0].shape[1:] if answers and gold.ndim == 1 else ()
    return np.broadcast_to(gold[:, None], (len(gold), *wide)) if wide else gold


def _stored_type(run: Result) -> np.dtype[Any]:
    """The type of answers in a copy."""
    return TASK_KINDS[run.task.kind].stored.dtype(run.task.labels)


def _check_numbers(file: Path, arrays: Sequence[np.ndarray]) -> None:
    most = np.finfo(np.float32).max  # answers are stored in it
    if any(not array.size or array.dtype.kind not in "fiu" or not (np.abs(array) <= most).all() for array in arrays):
        raise CompressError(
            f"{file}: expected predictions of finite numbers, one example at least; run the recipe again"
        )


@dataclass
class _Matrix:
    """Unique rows, and the row of each run's model."""

    rows: list[np.ndarray]
    index: dict[str, dict[str, int]] = field(default_factory=dict)
    _known: dict[bytes, int] = field(default_factory=dict)

    def add(self, run: str, model: str, answers: np.ndarray) -> None:
        place = self._known.setdefault(answers.tobytes(), len(self.rows))
        if place == len(self.rows):
            self.rows.append(answers)
        self.index.setdefault(run, {})[model] = place


def token_counts(results: Sequence[Result], folders: Sequence[Path], split: str | None = None) -> np.ndarray | None:
    """Return the length of each example of `split` (default: the first reported one) in the teacher's tokens, int64 [example], from the
    first by name of `results`, all of one task, that has them; None if none has, as in old versions.

    Raises `CompressError` naming the file if they are not a number for each example.
    """
    for run in sorted(results, key=lambda run: run.run):
        name = split or run.task.splits[0]
        file = find_predictions(run, folders)
        own = file is not None and file.name == PREDICTIONS
        matrix = f"gold/{name}" if own else _name(run, name)
        array = f"{TOKENS}/{name}" if own else f"{matrix}/{TOKENS}"
        if file is None or array not in _names(file):
            continue
        counts, answers = _arrays(file, [array, matrix])
        examples = answers.shape[:1] if own else answers.shape[1:2]
        if counts.shape != examples or counts.dtype.kind not in "iu" or (counts < 1).any():
            raise CompressError(f"{file}: {array}: expected a number of tokens of each example; run the recipe again")
        return counts.astype(np.int64)
    return None


def write_answers(results: Sequence[Result], folders: Sequence[Path], path: Path) -> None:
    """Write `packed_answers` to a file."""
    write_bytes(path, packed_answers(results, folders))


def packed_answers(results: Sequence[Result], folders: Sequence[Path]) -> bytes:
    """Return the copy of all answers of `results` that are found in `folders`. The same answers give the same bytes.

    Raises `CompressError` if two runs of a task have different gold labels, or if a file cannot be read.
    """
    matrices: dict[str, _Matrix] = {}
    names = Counter(name for name, _ in {(run.run, identity(run)) for run in results})
    for run in results:
        if file := find_predictions(run, folders):
            key = run.run if names[run.run] == 1 else _marked_name(run)
            for split in run.task.splits:
                _add(matrices, run, key, split, file)
    arrays = {name: np.stack(matrix.rows) for name, matrix in matrices.items()}
    for name, split, runs in _of_tasks(results):
        if name in arrays and (counts := token_counts(runs, folders, split)) is not None:
            arrays[f"{name}/{TOKENS}"] = counts.astype(np.int32)
    index = json.dumps({name: matrix.index for name, matrix in matrices.items()})
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **{_INDEX: np.array(index)}, **arrays)
    return content.getvalue()


def _of_tasks(results: Sequence[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    """Yield the name of a matrix, its split and the runs of its task."""
    names = dict.fromkeys((_name(run, split), split) for run in results for split in run.task.splits)
    for name, split in names:
        yield name, split, [run for run in results if _name(run, split) == name]


def _add(matrices: dict[str, _Matrix], run: Result, key: str, split: str, file: Path) -> None:
    names = [model.predictions for model in run.models]
    answers, gold = _answers(file, run, names, split)
    stored = _stored_type(run)
    matrix = matrices.setdefault(_name(run, split), _Matrix([gold.astype(stored)]))
    if not np.array_equal(matrix.rows[0], gold.astype(stored)):
        raise CompressError(
            f"{file}: its gold labels differ from those of the other runs of {run.task.name}; report them apart"
        )
    for name, answer in zip(names, answers, strict=True):
        matrix.add(key, name, answer.astype(stored))


def _marked_name(run: Result) -> str:
    """The run's key in the index if another run of the copy has its name."""
    return f"{run.run}@{identity(run)}"


def _name(run: Result, split: str) -> str:
    return f"{run.task.name}/{split}"


def _index(file: Path) -> Index:
    (text,) = _arrays(file, [_INDEX])
    try:
        index = json.loads(str(text))
        rows = [row for matrix in index.values() for models in matrix.values() for row in models.values()]
    except (ValueError, RecursionError, AttributeError):
        raise CompressError(
            f"{file}: cannot be read as predictions: its index is none; make the report again"
        ) from None
    if not all(isinstance(row, int) for row in rows):
        raise CompressError(f"{file}: cannot be read as predictions: its index is none; make the report again")
    return index


def _row_numbers(index: Index, run: Result, split: str) -> dict[str, dict[str, int]]:
    return index.get(_name(run, split), {})


def _reason(error: Exception) -> str:
    """NumPy takes any other file for a pickle, and advises to load it as one."""
    return "it is no NumPy archive" if "pickle" in str(error) else str(error)


def _names(file: Path) -> list[str]:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return list(arrays.files)
    except _BROKEN as error:
        raise CompressError(f"{file}: cannot be read as predictions: {_reason(error)}; run the recipe again") from None


def _arrays(file: Path, names: list[str]) -> list[np.ndarray]:
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            return [arrays[name] for name in names]
    except KeyError as error:
        raise CompressError(f"{file}: expected an array {error.args[0]}; run the recipe again") from None
    except _BROKEN as error:
        raise CompressError(f"{file}: cannot be read as predictions: {_reason(error)}; run the recipe again") from None
