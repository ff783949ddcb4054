"""Logits of a whole split through ONNX Runtime: what is reported is what is shipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .errors import CheckFailed, CompressError
from .runtime.passages import MOST_THRESHOLD, THRESHOLD

if TYPE_CHECKING:
    import onnxruntime

    from .tasks import Encoded

TOKENS = 4096  # per chunk, padding included: bounds memory, and larger chunks leave the cache
_NAMES = {"input_ids", "attention_mask", "token_type_ids"}


def predict_onnx(model: Path, encoded: Encoded, pad_id: int, *, threads: int | None = None) -> np.ndarray:
    """Return float32 outputs [example, output] in the examples' order, from chunks of near-equal length: logits of classes,
    logits of labels for words, and for questions what `Encoded.collected` makes of start and end.

    The chunks depend only on the lengths, so the same split gives the same outputs, also for dynamic int8, whose activation
    ranges are taken per chunk. CompressError: a graph with other inputs, or an example it cannot take; CheckFailed: logits
    that are not finite.
    """
    from .sessions.opening import open_session
    from .tasks import collate, sorted_chunks

    session = open_session(model, threads)
    names = _input_names(session, model)
    if not len(encoded):
        raise CompressError(f"{model}: expected at least one example to predict, found none")

    def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for indices in sorted_chunks(encoded.lengths, TOKENS):
            batch = collate(encoded, indices, pad_id)
            yield indices, _run(session, {name: batch[name] for name in names}, model)

    logits = encoded.decided(encoded.collected(parts()), threshold_of(session, model))
    if not np.isfinite(logits).all():
        bad = int((~np.isfinite(logits)).any(axis=1).sum())
        raise CheckFailed(f"{model}: expected finite logits, found {bad} of {len(logits)} examples without")
    return logits


def threshold_of(session: onnxruntime.InferenceSession, model: Path) -> float:
    """Return the threshold by which no answer must beat a span, from the graph's metadata; 0 if there is none, as for other
    tasks."""
    text = session.get_modelmeta().custom_metadata_map.get(THRESHOLD, "0")
    try:
        threshold = float(text)
    except ValueError:
        threshold = np.nan
    if not abs(threshold) <= MOST_THRESHOLD:
        raise CompressError(
            f"{model}: metadata `{THRESHOLD}`: expected a number from {-MOST_THRESHOLD:g} to {MOST_THRESHOLD:g}, found {text[:40]!r}"
        )
    return threshold


def _input_names(session: onnxruntime.InferenceSession, model: Path) -> list[str]:
    """The inputs that this graph has: DistilBERT and RoBERTa take no `token_type_ids`."""
    names = [value.name for value in session.get_inputs()]
    if not set(names) <= _NAMES or "input_ids" not in names:
        raise CompressError(
            f"{model}: expected inputs among {sorted(_NAMES)}, found {names}; export it with `compress`"
        )
    return names


def _run(session: onnxruntime.InferenceSession, feed: dict[str, np.ndarray], model: Path) -> np.ndarray:
    from .sessions.outputs import run_logits

    try:
        return run_logits(session, feed)
    except Exception as error:  # the binding's own types share no base but Exception
        shape = feed["input_ids"].shape
        reason = " ".join(str(error).split())
        raise CompressError(f"{model}: cannot run a batch of {shape[0]} x {shape[1]} tokens: {reason}") from None
