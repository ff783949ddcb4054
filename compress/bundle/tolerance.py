"""How far logits, or vectors, may differ from those that a bundle records."""

from __future__ import annotations

import numpy as np

from ..errors import CheckFailed
from ..runtime.passages import NO_SCORE
from ..spec.kinds import KINDS, Unit
from ..stats.fidelity import differ
from ..tasks import TASK_KINDS
from .document import BundleInfo
from .probes import rows_of

# Relative to the largest logit, at least 1: only the order of sums differs; a wrong weight or mask gives more than 1e-2.
FP32_TOLERANCE = 5e-4
# int8 kernels differ by instruction set: x86 CPUs without VNNI sum pairs of products with 16-bit saturation, and one rounding
# step in an activation propagates through all layers. A sound kernel's changes are about as large as quantization's own error,
# which the bundle records: int8 against fp32 where it was made. The other limit is relative to the largest output, at least 1,
# or to the spread of the probe's outputs if that is less: those of a ranker may all be small.
INT8_TOLERANCE = 0.25
INT8_TIMES_QUANTIZATION_ERROR = 3.0
FLIPS = 2  # allowed of a quantized model on the sixteen probe texts
FLIPPED_ANSWERS = 4  # on the sixteen probe questions: each has hundreds of spans, so that some are near a tie
FLIPPED_WORDS = 0.02  # of the probe's words, if these are labelled: there are many, and some are always near a tie


def recorded_outputs(info: BundleInfo, precision: str) -> np.ndarray:
    """Return the probe's recorded outputs, float [text, label], [word, label], [question, 4] or [text, width]. CheckFailed:
    there are none of this precision, or they have another shape."""
    rows = info.probe.logits.get(precision, ())  # type: ignore[call-overload]
    expected, columns, each = rows_of(info.task.kind, info.probe.texts), len(info.labels), "one column per label"
    if unit_of(info) == "question":
        columns, each = 4, "start, end, score and none"
    elif makes_vectors(info):
        columns, each = len(rows[0]) if rows else 0, "one column per number of a vector"
    if len(rows) != expected or any(len(row) != columns for row in rows) or not rows or not columns:
        raise CheckFailed(f"bundle.json: probe.logits.{precision}: expected one row per {unit_of(info)}, {each}")
    return np.array(rows)


def unit_of(info: BundleInfo) -> Unit:
    """Return what has a row in the probe: a text or a pair of texts, a word, or a question."""
    unit = KINDS[info.task.kind].unit
    return "text" if unit in ("choice", "pair") else unit


def makes_vectors(info: BundleInfo) -> bool:
    """Whether the model turns each text into a vector of length 1."""
    return KINDS[info.task.kind].unit == "pair"


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosines [text] of vectors [text, width] of length 1."""
    return 1 - np.square(np.linalg.norm(one - other, axis=1)) / 2


def most_flips(info: BundleInfo, rows: int) -> int:
    """Return how many of the probe's decisions may change in a quantized model."""
    if unit_of(info) == "question":
        return FLIPPED_ANSWERS
    return max(FLIPS, int(FLIPPED_WORDS * rows)) if unit_of(info) == "word" else FLIPS


def differences(info: BundleInfo, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the absolute differences of logits, or of the scores of answers, whose positions are no quantities; the
    distances of vectors, which have length 1."""
    if makes_vectors(info):
        return np.linalg.norm(first - second, axis=1)
    kind = TASK_KINDS[info.task.kind]
    return np.abs(kind.logits(first) - kind.logits(second))


def makes_decisions(info: BundleInfo) -> bool:
    """Whether answers are decisions that may change: one ending without the others is not."""
    return TASK_KINDS[info.task.kind].decisions is not None and KINDS[info.task.kind].unit != "choice"


def decision_word(info: BundleInfo) -> str:
    """Return what a decision is called: a label, or an answer."""
    return "answer" if unit_of(info) == "question" else "label"


def distance(info: BundleInfo, precision: str, actual: np.ndarray, expected: np.ndarray) -> tuple[str, bool]:
    """Return (description, whether the difference is possible between kernels of two CPUs) for logits in the form of
    `recorded`."""
    if actual.shape != expected.shape:
        return f"expected an array {list(expected.shape)}, found {list(actual.shape)}", False
    largest = float(differences(info, actual, expected).max())
    limit, changed = limit_of(info, precision), flips(info, actual, expected)
    if makes_vectors(info):
        return (
            f"smallest cosine {cosines(actual, expected).min():.7f} (at least {1 - limit**2 / 2:.7f})",
            largest <= limit,
        )
    detail = f"largest difference {largest:.2g} (at most {limit:.2g})"
    if makes_decisions(info):
        detail += f", {decision_word(info)}s changed {changed} of {len(actual)}"
    return detail, largest <= limit and changed <= (0 if precision == "fp32" else most_flips(info, len(actual)))


def compare_with_record(info: BundleInfo, precision: str, outputs: np.ndarray) -> str:
    """Compare with the bundle's record and return a description. CheckFailed: too far from it."""
    detail, near = distance(info, precision, outputs, recorded_outputs(info, precision))
    if not near:
        raise CheckFailed(f"{detail}; this CPU does not compute what the bundle's record says")
    return detail


def limit_of(info: BundleInfo, precision: str) -> float:
    expected = recorded_outputs(info, precision)
    quantities = TASK_KINDS[info.task.kind].logits(expected)
    largest = float(np.abs(quantities[quantities > NO_SCORE]).max(initial=0.0))
    if precision == "fp32":
        return FP32_TOLERANCE * max(1.0, largest)
    scale = max(1.0, largest)
    if "fp32" not in info.models:  # then nothing says how much quantization itself changes
        return INT8_TOLERANCE * scale
    if not makes_vectors(info):
        scale = min(scale, _spread(quantities) or largest)
    return max(INT8_TOLERANCE * scale, INT8_TIMES_QUANTIZATION_ERROR * own_difference(info, precision))


def own_difference(info: BundleInfo, precision: str) -> float:
    """Return the largest difference between a quantized model and the fp32 one where the bundle was made."""
    return float(differences(info, recorded_outputs(info, precision), recorded_outputs(info, "fp32")).max())


def _spread(quantities: np.ndarray) -> float:
    """Return the difference between the smallest and largest value of a column, for the column where it is largest."""
    known = np.where(quantities > NO_SCORE, quantities, np.nan).reshape(len(quantities), -1)
    spreads = [float(np.ptp(column[~np.isnan(column)])) for column in known.T if not np.isnan(column).all()]
    return max(spreads, default=0.0)


def flips(info: BundleInfo, first: np.ndarray, second: np.ndarray) -> int:
    """Return how many texts, words or questions are answered differently; 0 if answers are not decisions."""
    kind = TASK_KINDS[info.task.kind]
    return int(differ(kind.answers(first), kind.answers(second)).sum()) if makes_decisions(info) else 0
