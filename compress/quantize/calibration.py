"""The ranges of activations on a sample of texts, for int8 with fixed levels."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import ModelProto

from .ranges import RANGES, Range, Seen
from .sampling import Feed, Sample

_COUNTED = ("percentile", "mse")  # methods that need a second pass, for the histogram


def calibrate(
    model: ModelProto, tensors: Sequence[str], feeds: Sequence[Feed], *, method: str = "percentile", percentile: float
) -> dict[str, Range]:
    """Tensor -> its range by a method of `RANGES`; `percentile` is for the method of that name.

    `feeds`: the model's inputs by name, padded batches; padding is left out. Memory is that of one batch and a
    histogram of 65,536 bins a tensor.
    """
    seen = {name: Seen() for name in tensors}
    with Sample(model, tensors, feeds) as sample:
        for batch in sample.batches():
            for name, values in batch.items():
                seen[name].add_extremes(values)
        if method in _COUNTED:
            for batch in sample.batches():
                for name, values in batch.items():
                    seen[name].add_counts(values)
    return {name: RANGES[method](found, percentile) for name, found in seen.items()}
