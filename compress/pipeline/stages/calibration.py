"""What quantization needs of a task's texts: calibration batches, and an evaluation of candidates on the tuning split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...errors import CompressError
from ...files.paths import expand_home
from ...quantize.methods import quantizer_of
from ...spec.kinds import KINDS, Unit
from ...spec.quantization import Quantize
from ...spec.task import TaskSpec
from ...stats.flip_goals import texts_to_judge
from ...store import hash_file
from ...tasks import TASK_KINDS, Split, encode, headline, of_words, score
from ...tasks.reading.tables import lines_of, read_text
from ..plan import Context, Draft
from ..plan.fields import named_file_hash
from ..plan.sources import TaskSource

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ...quantize.evaluator import Evaluator
    from ...tasks import Encoded

_LEAST = 32  # texts to calibrate on
_FEW = 256  # texts on which matmuls are told apart
# How lines are cut, unless as one or two texts.
_CUTS: dict[Unit, str] = {"word": "windows", "question": "windows", "choice": "context first"}
# Empty labels, as in `Split.labels`, for texts that are read in windows.
_EMPTY: dict[Unit, np.ndarray] = {"word": np.zeros((0, 3), np.int32), "question": np.zeros((0, 2), np.int32)}
_PROFILED = 128  # tokens of a timed text, unless the task's texts are shorter


def calibrated_on(draft: Draft, spec: Quantize) -> dict[str, str]:
    """Return hashes of what calibration reads, and `cut`: how lines of text are cut, unless as one or two texts. The data are included even
    if a text is given: the tuning split is evaluated, and the text is checked against the reported splits."""
    if spec.calibration_text is None:
        return {"data": draft.task.fingerprint}
    unit = KINDS[draft.task.spec.kind].unit
    cut = {"cut": _CUTS[unit]} if unit in _CUTS else {}
    return {
        "data": draft.task.fingerprint,
        "text": named_file_hash("quantize.calibration_text", spec.calibration_text),
    } | cut


def length_stratified(encoded: Encoded, pad: int, count: int, *, tokens: int = 4096) -> list[dict[str, np.ndarray]]:
    """Return padded batches of `count` texts (all, if there are fewer), evenly spread over the texts sorted by length; a batch has at most
    `tokens` tokens, padding included. A query's passages may be taken in part."""
    from ...tasks import collate, sorted_chunks

    chosen = encoded.stratified(count)
    return [collate(encoded, chosen[chunk], pad) for chunk in sorted_chunks(encoded.lengths[chosen], tokens)]


def calibration(
    context: Context, spec: Quantize, tokenizer: Tokenizer, pad: int, outside: Mapping[str, str]
) -> list[dict[str, np.ndarray]]:
    """Return batches of the training texts, or of the file that `spec` names, whose hash is in `outside`. CompressError: a file that is
    unsuitable, or has changed."""
    length = context.task.spec.max_length
    if spec.calibration_text is None:
        return length_stratified(context.task.encoded("train", tokenizer, length), pad, spec.calibration_examples)
    path = expand_home(spec.calibration_text)
    texts = read_lines(path, context.task.spec)
    if hash_file(path) != outside["text"]:
        raise CompressError(f"quantize.calibration_text: {path}: it changed since this command started; start it again")
    refuse_reported(spec.calibration_text, texts, context.task)
    return length_stratified(encode(tokenizer, texts, length), pad, spec.calibration_examples)


def read_lines(path: Path, spec: TaskSpec) -> Split:
    """Return the lines that are not blank as unlabelled examples of the task: one or two texts, cut or read in windows like the task's own.
    CompressError: unreadable, or fewer than 32 lines."""
    columns = 2 if spec.pairs else 1  # what a model reads at once
    try:
        lines = [(number, line) for number, line in enumerate(lines_of(read_text(path)), 1) if line.strip()]
    except CompressError as error:
        raise CompressError(f"quantize.calibration_text: {error}") from None
    rows = [line.split("\t") for _, line in lines]
    wrong = next(
        ((number, len(row)) for (number, _), row in zip(lines, rows, strict=True) if len(row) != columns), None
    )
    if wrong is not None:
        number, count = wrong
        raise CompressError(
            f"quantize.calibration_text: {path}:{number}: expected {columns} text(s) with tabs between, found {count}"
        )
    if len(rows) < _LEAST:
        raise CompressError(
            f"quantize.calibration_text: {path}: expected at least {_LEAST} lines of text, found {len(rows)}"
        )
    return Split(
        tuple(list(column) for column in zip(*rows, strict=True)), _no_labels(KINDS[spec.kind].unit, len(rows))
    )


def _no_labels(unit: Unit, count: int) -> np.ndarray:
    """Return labels in the form by which `Split` knows how its texts are read; for endings each is the only one of its question."""
    if unit == "choice":
        return np.stack([np.ones(count, np.int64), np.arange(count)], axis=1)
    empty = _EMPTY.get(unit)
    return np.zeros(count, np.int64) if empty is None else of_words([empty] * count)


def refuse_reported(name: str, texts: Split, task: TaskSource) -> None:
    """Raise `CompressError` if a text is in a split that scores are reported on, ignoring case and spacing."""
    for split, shared in task.reported_rows(texts).items():
        if shared:
            raise CompressError(
                f"quantize.calibration_text: {name}: {len(shared):,} of {len(texts):,} texts are in the split `{split}`, on "
                f"which scores are reported (the first is text {shared[0] + 1}): calibrating on them would flatter the scores; "
                "leave them out"
            )


def evaluator(context: Context, spec: Quantize, tokenizer: Tokenizer, pad: int, folder: Path) -> Evaluator:
    """Return an evaluator on the tuning split, with calibration batches of `spec.calibration_examples` of its texts.

    A search that counts changed decisions needs no labels: if the split has too few texts for that, it is extended by texts of train,
    evenly spread over those sorted by length, as many as are missing and available. The model has seen these, and is more confident on
    them.
    """
    from ...evaluate import predict_onnx
    from ...quantize.evaluator import Evaluator

    data, length = context.task.data, context.task.spec.max_length
    kind = TASK_KINDS[data.spec.kind]
    tuning = context.task.encoded("tuning", tokenizer, length)
    every, texts = tuning, {"tuning": len(tuning.labels)}
    missing = texts_to_judge(spec.max_flips) - len(tuning.labels)
    if quantizer_of(spec).counts_flips and kind.decisions and missing > 0:
        train = context.task.encoded("train", tokenizer, length)
        rows = -(-missing * len(train) // max(1, len(train.labels)))  # to get so many decisions
        every = tuning.concat(train.take(np.sort(train.stratified_groups(rows))))
        texts["train"] = len(every.labels) - len(tuning.labels)
        context.notice(_of_train(texts, f"{KINDS[data.spec.kind].unit}s"))
    chosen = np.sort(tuning.stratified_groups(_FEW))
    few = tuning.take(chosen)

    def points(logits: np.ndarray, encoded: Encoded) -> float:
        return headline(score(data.spec, data.labels, logits, encoded.labels))

    return Evaluator(
        few=lambda path: predict_onnx(path, few, pad, threads=context.threads),
        all=lambda path: predict_onnx(path, every, pad, threads=context.threads),
        score_few=lambda logits: points(logits, few),
        score=lambda logits: points(logits[: len(tuning.labels)], tuning),
        texts=texts,
        times=lambda path: _node_times(path, min(_PROFILED, data.spec.max_length)),
        feeds=length_stratified(tuning, pad, spec.calibration_examples),
        kind=kind,
        folder=folder,
        on_progress=lambda done, total: context.listener.progress("matmuls", done, total),
    )


def _of_train(texts: Mapping[str, int], what: str) -> str:
    return (
        f"quantize: auto: changed decisions are counted on {texts['tuning']:,} {what} of the tuning split and "
        f"{texts['train']:,} of train, which the model has seen: on new texts more may change"
    )


def _node_times(path: Path, length: int) -> dict[str, float]:
    """Return node -> milliseconds for one text of `length` tokens on one thread."""
    from ...bench.operators import operators

    return {operator.name: operator.milliseconds for operator in operators(path, [length])[1]}
