"""The ranges of activations on a sample of texts, for int8 with fixed levels."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper

from ..graphs import write_model
from ..sessions import open_session
from .layouts import Range

Feed = dict[str, np.ndarray]
_BINS = 1 << 16


def calibrate(
    model: ModelProto, tensors: Sequence[str], feeds: Sequence[Feed], *, percentile: float
) -> dict[str, Range]:
    """Tensor -> the range that holds `percentile` of its values, the rest cut off in equal shares below and above.

    `feeds`: the model's inputs by name, padded batches; padding is left out. Memory is that of one batch and a
    histogram of 65,536 bins a tensor, so a limit is exact to 1/65,536 of the widest range seen.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calibrate.onnx"
        write_model(_giving(model, tensors), path)
        session = open_session(path)
        names = {value.name for value in session.get_inputs()}

        def values() -> Iterable[tuple[str, np.ndarray]]:
            for feed in feeds:
                found = session.run(list(tensors), {name: feed[name] for name in names})
                for name, array in zip(tensors, found, strict=True):
                    yield name, _real(np.asarray(array), feed["attention_mask"])

        limits: dict[str, tuple[float, float]] = {}
        for name, array in values():
            low, high = limits.get(name, (np.inf, -np.inf))
            limits[name] = min(low, float(array.min())), max(high, float(array.max()))
        counts = {name: np.zeros(_BINS, np.int64) for name in tensors}
        for name, array in values():
            counts[name] += np.histogram(array, _BINS, limits[name])[0]
    return {name: _cut(counts[name], *limits[name], percentile) for name in tensors}


def _giving(model: ModelProto, tensors: Sequence[str]) -> ModelProto:
    """A copy that gives `tensors` out too."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in tensors)
    return model


def _real(states: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Without padding, where `states` [batch, length, size] has a row for each token."""
    return states[mask.astype(bool)] if states.shape[:2] == mask.shape else states


def _cut(counts: np.ndarray, low: float, high: float, percentile: float) -> Range:
    """The edges between which `percentile` of the counted values lie."""
    edges = np.linspace(low, high, _BINS + 1)
    share = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
    cut = (100 - percentile) / 200
    first = int(np.searchsorted(share, cut, side="right")) - 1
    last = int(np.searchsorted(share, 1 - cut, side="left"))
    return Range(float(edges[max(first, 0)]), float(edges[min(last, _BINS)]))
