"""What quantization asks of a task's texts: batches to calibrate on, and how a candidate answers the tuning split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import CompressError
from ..places import from_home
from ..spec.quantization import Quantize
from ..store import hash_file
from ..tasks import Split, encode, headline, normalized, score
from .context import Context

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from ..quantize.search import Judge
    from ..tasks import Encoded

_LEAST = 32  # texts to calibrate on
_FEW = 256  # texts that tell products apart
_PROFILED = 128  # tokens of a text, or as many as the task's texts may have


def spread(encoded: Encoded, pad: int, count: int, *, tokens: int = 4096) -> list[dict[str, np.ndarray]]:
    """Padded batches of `count` texts (all, where there are fewer), evenly spread over those sorted by length; a batch
    has at most `tokens` of them, padding included."""
    from ..tasks import collate, sorted_chunks

    chosen = _even(encoded, count)
    return [collate(encoded, chosen[chunk], pad) for chunk in sorted_chunks(encoded.lengths[chosen], tokens)]


def calibration(
    context: Context, spec: Quantize, tokenizer: Tokenizer, pad: int, outside: Mapping[str, str]
) -> list[dict[str, np.ndarray]]:
    """Batches of the training texts, or of the file that `spec` names, whose hash is in `outside`. CompressError: a file
    that cannot serve, or is another by now."""
    length = context.task.spec.max_length
    if spec.calibration_text is None:
        return spread(context.task.encoded("train", tokenizer, length), pad, spec.calibration_examples)
    path = from_home(spec.calibration_text)
    texts = read_lines(path, len(context.task.spec.text))
    if hash_file(path) != outside["text"]:
        raise CompressError(f"quantize.calibration_text: {path}: it changed since this command started; start it again")
    refuse_reported(spec.calibration_text, texts, context.task.data.reported)
    return spread(encode(tokenizer, texts, length), pad, spec.calibration_examples)


def read_lines(path: Path, columns: int) -> Split:
    """Lines that are not empty, as unlabelled examples of one or two texts. CompressError: unreadable, or fewer than 32."""
    try:
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise CompressError(f"quantize.calibration_text: {path}: cannot be read as text: {error}") from None
    wrong = next((number for number, row in enumerate(rows, 1) if len(row) != columns), None)
    if wrong is not None:
        raise CompressError(
            f"quantize.calibration_text: {path}: text {wrong}: expected {columns} text(s) with tabs between, found {len(rows[wrong - 1])}"
        )
    if len(rows) < _LEAST:
        raise CompressError(
            f"quantize.calibration_text: {path}: expected at least {_LEAST} lines of text, found {len(rows)}"
        )
    return Split(tuple(list(column) for column in zip(*rows, strict=True)), np.zeros(len(rows), np.int64))


def refuse_reported(name: str, texts: Split, reported: Mapping[str, Split]) -> None:
    """CompressError: a text is in a split that scores are reported on, if need be in other case or spacing."""
    rows = normalized(texts)
    for split, found in reported.items():
        known = set(normalized(found))
        if shared := [number for number, row in enumerate(rows, 1) if row in known]:
            raise CompressError(
                f"quantize.calibration_text: {name}: {len(shared):,} of {len(rows):,} texts are in the split `{split}`, on "
                f"which scores are reported (the first is text {shared[0]}): calibrating on them would flatter the scores; "
                "leave them out"
            )


def judge(context: Context, tuning: Encoded, pad: int, count: int, folder: Path) -> Judge:
    """On the tuning split; `count` of its texts are given out as batches."""
    from ..evaluate import predict_onnx
    from ..quantize.search import Judge

    data, chosen = context.task.data, np.sort(_even(tuning, _FEW))
    few, labels = tuning.take(chosen), np.asarray(data.tuning.labels)

    def points(logits: np.ndarray, rows: slice | np.ndarray) -> float:
        return headline(score(data.spec, data.labels, logits, labels[rows]))

    return Judge(
        few=lambda path: predict_onnx(path, few, pad, threads=context.threads),
        all=lambda path: predict_onnx(path, tuning, pad, threads=context.threads),
        score_few=lambda logits: points(logits, chosen),
        score=lambda logits: points(logits, slice(None)),
        times=lambda path: _times(path, min(_PROFILED, data.spec.max_length)),
        feeds=spread(tuning, pad, count),
        decides=data.spec.kind != "regression",
        folder=folder,
        on_progress=lambda done, total: context.listener.progress("products", done, total),
    )


def _even(encoded: Encoded, count: int) -> np.ndarray:
    order = np.argsort(encoded.lengths, kind="stable")
    return order[np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)]


def _times(path: Path, length: int) -> dict[str, float]:
    """Node -> milliseconds of one text of `length` tokens on one thread."""
    from ..bench.operators import operators

    return {operator.name: operator.milliseconds for operator in operators(path, [length])[1]}
