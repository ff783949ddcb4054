"""Does the graph compute what the checkpoint computes?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from ..errors import CheckFailed
from ..models.features import logits_of
from ..sessions import open_session, real_rows, run_logits
from .tracing import Traced, example

# Both sides are fp32 and differ only in the order of their sums: about 1e-6 per layer, relative to the
# activations; 1e-4 leaves room for 24 layers and is far below what a wrong mask or position costs (> 1e-2).
TOLERANCE = 1e-4
_LONG, _LONGEST = 1024, 2048  # tokens

Logits = Mapping[tuple[int, int], np.ndarray]  # by (batch, length)


def shapes(max_length: int) -> list[tuple[int, int]]:
    """Small, odd and full: a baked-in batch or length shows in at least one of them. Full is up to `_LONGEST` tokens, of
    which torch's scores of all pairs in a layer take 0.2 GB at 12 heads."""
    longest = (8, max_length) if max_length <= _LONG else (1, min(max_length, _LONGEST))
    wanted = [(1, 1), (1, 7), (3, 19), longest]
    return list(dict.fromkeys((batch, min(length, max_length)) for batch, length in wanted))


def fast_tolerance(layers: int) -> float:
    """Of the graph that is written here, in which nothing is approximate: 1e-5 up to six layers, then 1e-6 more for each."""
    return 1e-6 * max(10, layers + 4)


def torch_logits(traced: Traced) -> Logits:
    """What the checkpoint answers to an `example` of each of `shapes`, for every graph that is held against it."""
    found = {}
    for shape in shapes(traced.max_length):
        inputs = example(traced, *shape)
        with torch.inference_mode():
            found[shape] = logits_of(traced.model, traced.model(**inputs), inputs["attention_mask"]).numpy()
    return found


def check_parity(traced: Traced, path: Path, logits: Logits, tolerance: float = TOLERANCE) -> dict[str, float]:
    """Largest absolute error of a graph against `logits`, or vectors, those of `torch_logits`: per shape ("batch x length"), ragged
    padding included; of logits of tokens those of real ones.

    The tolerance is relative to the largest logit, at least 1; numbers of vectors, of length 1, are smaller, and so are their errors.
    CheckFailed lists every shape's error.
    """
    session = open_session(path)
    errors: dict[str, float] = {}
    bad = False
    for (batch, length), expected in logits.items():
        feed = {name: value.numpy() for name, value in example(traced, batch, length).items()}
        found = run_logits(session, feed)
        same_shape = found.shape == expected.shape
        found, expected = (real_rows(each, feed["attention_mask"]) for each in (found, expected))
        error = float(np.abs(found - expected).max()) if same_shape else float("inf")
        errors[f"{batch}x{length}"] = error
        scale = max(1.0, float(np.abs(expected).max()))
        bad |= not error <= tolerance * scale  # written so that NaN fails
    if bad:
        listed = ", ".join(f"{shape}: {error:.2e}" for shape, error in errors.items())
        raise CheckFailed(f"{path}: logits differ from torch's beyond {tolerance:g}: {listed}; the graph is not kept")
    return errors
