"""The noise that int8 adds to each part of a model, from the same tensors of the fp32 and the int8 graph."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto

from ..graphs.matmuls import matmuls
from .int8_graph import biases
from .sampling import Feed, Sample
from .value_folding import DIVIDED

_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class _Part:
    """A node and its output tensor. `matmul`: the int8 graph may repeat or divide some of its channels."""

    name: str
    tensor: str
    matmul: bool = False


def signal_to_noise(fp32: Path, int8: Path, feeds: Sequence[Feed]) -> dict[str, float | None]:
    """Map each part to 10 · log10(Σ fp32² / Σ (fp32 − int8)²) of its output, in dB; None if both agree to the bit.

    Parts are the matmuls by a stored weight, bias included, and the LayerNormalizations, named as `exclude` names them and
    in graph order, if both graphs have their tensor; matmuls by a weight that is cut into a matrix for each head are left
    out. Channels that int8 repeats count once: the copies come last. Values that int8 divides by factors are multiplied
    again, each channel by the number that fits best. `feeds`: the models' inputs by name, padded batches [batch, length];
    padding is ignored. Memory: the outputs of all parts for one batch, twice.
    """
    models = [onnx.load(path) for path in (fp32, int8)]
    int8_tensors = {name for node in models[1].graph.node for name in node.output}
    divided = {part.tensor for part in _matmul_parts(models[0].graph) if f"{part.tensor}{DIVIDED}" in int8_tensors}
    parts = [part for part in _matmul_parts(models[0].graph) if part.tensor in int8_tensors | divided]
    if not parts:
        return {}
    tensors = list(dict.fromkeys(part.tensor for part in parts))
    named = {name: f"{name}{DIVIDED}" if name in divided else name for name in tensors}
    sums: dict[str, _Sums] = defaultdict(_Sums)
    full, low = (
        Sample(model, wanted, feeds) for model, wanted in zip(models, (tensors, [*named.values()]), strict=True)
    )
    with full, low:
        for expected, actual in zip(full.batches(), low.batches(), strict=True):
            for part in parts:
                exact, rounded = expected[part.tensor], actual[named[part.tensor]]
                if part.matmul:
                    rounded = rounded[..., : exact.shape[-1]]
                sums[part.name].add(exact, rounded, fit=part.tensor in divided)
    return {part.name: sums[part.name].decibels() for part in parts}


class _Sums:
    """Sums over all batches of the fp32 and the int8 outputs."""

    def __init__(self) -> None:
        self._signal, self._noise = 0.0, 0.0
        self._exact: np.ndarray | float = 0.0
        self._product: np.ndarray | float = 0.0
        self._rounded: np.ndarray | float = 0.0

    def add(self, exact: np.ndarray, rounded: np.ndarray, *, fit: bool) -> None:
        """Add a batch. `fit`: compare up to a factor for each channel, the last axis."""
        self._signal += _square(exact)
        if not fit:
            self._noise += _square(exact - rounded)
            return
        exact, rounded = (values.reshape(-1, values.shape[-1]).astype(np.float64) for values in (exact, rounded))
        self._exact += (exact**2).sum(0)
        self._product += (exact * rounded).sum(0)
        self._rounded += (rounded**2).sum(0)

    def decibels(self) -> float | None:
        fitted = np.square(self._product) / np.maximum(self._rounded, _SMALLEST)
        noise = self._noise + float(np.maximum(self._exact - fitted, 0).sum())
        return round(10 * float(np.log10(max(self._signal, _SMALLEST) / noise)), 2) if noise else None


def _matmul_parts(graph: GraphProto) -> list[_Part]:
    matmul_names, adds = matmuls(graph), biases(graph)
    parts = []
    for node in graph.node:
        if node.name in matmul_names.fp32:
            parts.append(_Part(node.name, adds.get(node.name, node).output[0], matmul=True))
        elif node.op_type == "LayerNormalization":
            parts.append(_Part(node.name, node.output[0]))
    return parts


def _square(values: np.ndarray) -> float:
    return float(np.square(values, dtype=np.float64).sum())
