"""How far logits, or vectors, may be from those that a bundle records."""

from __future__ import annotations

import numpy as np

from ..errors import CheckFailed
from ..fidelity import differ
from ..runtime.passages import NEVER
from ..spec.kinds import KINDS, Unit
from ..tasks import TASK_KINDS
from .document import BundleInfo
from .probes import rows_of

# Relative to the largest logit, at least 1: the same arithmetic in another order of sums; a wrong weight or a wrong mask shows above 1e-2.
FP32_TOLERANCE = 5e-4
# int8 kernels differ by instruction set: x86 CPUs without VNNI sum pairs of products with 16-bit saturation,
# and one step of rounding in an activation moves on through all layers. What a sound kernel changes is of the
# size of quantization's own error, which the bundle shows: int8 against fp32 where it was made. The other limit is relative to the
# largest output, at least 1, or to how far the outputs for the probe lie apart, where that is less: those of a ranker may all be small.
INT8_TOLERANCE = 0.25
INT8_TIMES_QUANTIZATION_ERROR = 3.0
FLIPS = 2  # of the sixteen probe texts, of a quantized model
FLIPPED_ANSWERS = 4  # of the sixteen probe questions: each has hundreds of spans, so that some are near a tie
FLIPPED_WORDS = (
    0.02  # of the probe's words, where these are labelled: each text has many, and some are always near a tie
)


def recorded(info: BundleInfo, precision: str) -> np.ndarray:
    """float [text, label], [word, label], [question, 4] or [text, width], the probe's. CheckFailed: there are none of this form, or of
    another shape."""
    rows = info.probe.logits.get(precision, ())  # type: ignore[call-overload]
    expected, columns, each = rows_of(info.task.kind, info.probe.texts), len(info.labels), "one column per label"
    if unit_of(info) == "question":
        columns, each = 4, "start, end, score and none"
    elif of_vectors(info):
        columns, each = len(rows[0]) if rows else 0, "one column per number of a vector"
    if len(rows) != expected or any(len(row) != columns for row in rows) or not rows or not columns:
        raise CheckFailed(f"bundle.json: probe.logits.{precision}: expected one row per {unit_of(info)}, {each}")
    return np.array(rows)


def unit_of(info: BundleInfo) -> Unit:
    """What of the probe has a row: a text, or a pair of them, a word or a question."""
    unit = KINDS[info.task.kind].unit
    return "text" if unit in ("choice", "pair") else unit


def of_vectors(info: BundleInfo) -> bool:
    """Whether the model gives each text a vector of length 1."""
    return KINDS[info.task.kind].unit == "pair"


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """[text], of vectors [text, width] of length 1."""
    return 1 - np.square(np.linalg.norm(one - other, axis=1)) / 2


def most_flips(info: BundleInfo, rows: int) -> int:
    """How many of the probe's decisions a quantized model may take otherwise."""
    if unit_of(info) == "question":
        return FLIPPED_ANSWERS
    return max(FLIPS, int(FLIPPED_WORDS * rows)) if unit_of(info) == "word" else FLIPS


def differences(info: BundleInfo, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of the logits, or the scores of answers: where an answer stands is no quantity; of vectors, whose length is 1, the distance."""
    if of_vectors(info):
        return np.linalg.norm(first - second, axis=1)
    kind = TASK_KINDS[info.task.kind]
    return np.abs(kind.logits(first) - kind.logits(second))


def decides(info: BundleInfo) -> bool:
    """Whether answers are decisions, which may change: not of one ending without the others."""
    return TASK_KINDS[info.task.kind].decides and KINDS[info.task.kind].unit != "choice"


def named(info: BundleInfo) -> str:
    """What is decided: a label, or an answer."""
    return "answer" if unit_of(info) == "question" else "label"


def distance(info: BundleInfo, precision: str, found: np.ndarray, expected: np.ndarray) -> tuple[str, bool]:
    """(what to say, whether it is as near as kernels of two CPUs may be), of logits of one form, as `recorded` has them."""
    if found.shape != expected.shape:
        return f"expected an array {list(expected.shape)}, found {list(found.shape)}", False
    largest = float(differences(info, found, expected).max())
    limit, changed = limit_of(info, precision), flips(info, found, expected)
    if of_vectors(info):
        return (
            f"smallest cosine {cosines(found, expected).min():.7f} (at least {1 - limit**2 / 2:.7f})",
            largest <= limit,
        )
    detail = f"largest difference {largest:.2g} (at most {limit:.2g})"
    if decides(info):
        detail += f", {named(info)}s changed {changed} of {len(found)}"
    return detail, largest <= limit and changed <= (0 if precision == "fp32" else most_flips(info, len(found)))


def compared(info: BundleInfo, precision: str, found: np.ndarray) -> str:
    """Against the bundle's record. CheckFailed: too far from it."""
    detail, near = distance(info, precision, found, recorded(info, precision))
    if not near:
        raise CheckFailed(f"{detail}; this CPU does not compute what the bundle's record says")
    return detail


def limit_of(info: BundleInfo, precision: str) -> float:
    expected = recorded(info, precision)
    quantities = TASK_KINDS[info.task.kind].logits(expected)
    largest = float(np.abs(quantities[quantities > NEVER]).max(initial=0.0))
    if precision == "fp32":
        return FP32_TOLERANCE * max(1.0, largest)
    scale = max(1.0, largest)
    if "fp32" not in info.models:  # then nothing says how much quantization itself changes
        return INT8_TOLERANCE * scale
    if not of_vectors(info):
        scale = min(scale, _spread(quantities) or largest)
    return max(INT8_TOLERANCE * scale, INT8_TIMES_QUANTIZATION_ERROR * own_difference(info, precision))


def own_difference(info: BundleInfo, precision: str) -> float:
    """How far a quantized model was from the fp32 one, at most, where the bundle was made."""
    return float(differences(info, recorded(info, precision), recorded(info, "fp32")).max())


def _spread(quantities: np.ndarray) -> float:
    """From the least to the largest value of a column, of the column where they lie farthest apart."""
    known = np.where(quantities > NEVER, quantities, np.nan).reshape(len(quantities), -1)
    apart = [float(np.ptp(column[~np.isnan(column)])) for column in known.T if not np.isnan(column).all()]
    return max(apart, default=0.0)


def flips(info: BundleInfo, first: np.ndarray, second: np.ndarray) -> int:
    """Texts, words or questions that are answered otherwise; none where answers are no decisions."""
    kind = TASK_KINDS[info.task.kind]
    return int(differ(kind.answers(first), kind.answers(second)).sum()) if decides(info) else 0
