"""Check that a graph computes what the checkpoint computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ..errors import CheckFailed
from ..models.features.named import logits_of
from ..sessions.opening import open_session
from ..sessions.outputs import real_rows, run_logits
from .rounding import exact_answers
from .tracing import Traced, example

# Both sides are fp32 and differ only in the order of their sums: about 1e-6 per layer, relative to the
# activations; 1e-4 leaves room for 24 layers and is far below what a wrong mask or position costs (> 1e-2).
TOLERANCE = 1e-4
_WRONG = 1e-2  # certainly not rounding
_FULL = 1024  # tokens of the full example, unless two rows have more
_LONG, _LONGEST = 1024, 2048  # tokens of a row: above the first there is one row

Logits = Mapping[tuple[int, int], np.ndarray]  # by (batch, length)


def shapes(max_length: int) -> list[tuple[int, int]]:
    """Return small, odd and full shapes: a baked-in batch or length shows in at least one of them. A full row has up to
    `_LONGEST` tokens, for which torch's attention scores in a layer take 0.2 GB at 12 heads. There are 8 rows, fewer of long
    ones: every row is computed alike, and three models compute them."""
    rows = 1 if max_length > _LONG else max(2, min(8, _FULL // max_length))
    longest = rows, min(max_length, _LONGEST)
    wanted = [(1, 1), (1, 7), (3, 19), longest]
    return list(dict.fromkeys((batch, min(length, max_length)) for batch, length in wanted))


def fast_tolerance(layers: int) -> float:
    """Return the tolerance of the fast graph, in which nothing is approximate: 1e-5 up to six layers, then 1e-6 more for each."""
    return 1e-6 * max(10, layers + 4)


def torch_logits(traced: Traced) -> Logits:
    """Return the checkpoint's logits for an `example` of each of `shapes`; all its graphs are compared with these."""
    logits = {}
    for shape in shapes(traced.max_length):
        inputs = example(traced, *shape)
        with torch.inference_mode():
            logits[shape] = logits_of(traced.model, traced.model(**inputs), inputs["attention_mask"]).numpy()
    return logits


@dataclass(frozen=True)
class Parity:
    """By shape, "batch x length": the largest absolute error of a graph, and how far rounding alone moves the answers, if
    the error is beyond the tolerance because the model amplifies rounding."""

    errors: dict[str, float]
    rounding: dict[str, float]


def check_parity(traced: Traced, path: Path, logits: Logits, tolerance: float = TOLERANCE) -> Parity:
    """Compare a graph with the logits, or vectors, of `torch_logits`, on inputs with ragged padding; logits of padding
    tokens are ignored.

    The tolerance is relative to the largest logit, at least 1; the entries of vectors, of length 1, are smaller, and so are
    their errors. An example beyond it passes if its error is small and within what `exact_answers` attributes to rounding.
    CheckFailed lists every shape's error.
    """
    session = open_session(path)
    errors: dict[str, float] = {}
    rounding: dict[str, float] = {}
    bad = False
    for (batch, length), expected in logits.items():
        inputs = example(traced, batch, length)
        feed = {name: value.numpy() for name, value in inputs.items()}
        mask, shape = feed["attention_mask"], f"{batch}x{length}"
        actual = run_logits(session, feed)
        if actual.shape != expected.shape:
            errors[shape], bad = float("inf"), True
            continue
        scale = max(1.0, float(np.abs(real_rows(expected, mask)).max()))
        by_example = _by_example(actual - expected, mask)
        errors[shape] = float(by_example.max())
        beyond = ~(by_example <= tolerance * scale)  # written so that NaN is beyond
        if not beyond.any():
            continue
        if errors[shape] <= _WRONG * scale:
            exact, moved = exact_answers(
                traced.model, {name: value[torch.from_numpy(beyond)] for name, value in inputs.items()}
            )
            moves = _by_example(moved, mask[beyond])
            if (_by_example(actual[beyond] - exact, mask[beyond]) <= np.maximum(tolerance * scale, moves)).all():
                rounding[shape] = float(moves.max())
                continue
        bad = True
    if bad:
        listed = ", ".join(f"{shape}: {error:.2e}" for shape, error in errors.items())
        raise CheckFailed(f"{path}: logits differ from torch's beyond {tolerance:g}: {listed}; the graph is not kept")
    return Parity(errors, rounding)


def _by_example(differences: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the largest difference of each example, [batch]; padding tokens of [batch, length, size] are ignored."""
    sizes = np.abs(differences)
    if sizes.ndim == 3 and sizes.shape[:2] == mask.shape:
        sizes = np.where(mask[..., None] == 1, sizes, 0)
    return sizes.reshape(len(sizes), -1).max(1)
