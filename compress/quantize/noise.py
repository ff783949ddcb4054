"""The noise that int8 brings into each part of a model: the same tensors of the fp32 and the int8 graph, side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import GraphProto

from ..graphs import matmuls
from .int8_graph import biases
from .sampling import Feed, Sample

_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class _Part:
    """A node and the tensor that it gives. `widens`: int8 may have some of its channels more than once."""

    name: str
    tensor: str
    widens: bool = False


def signal_to_noise(fp32: Path, int8: Path, feeds: Sequence[Feed]) -> dict[str, float | None]:
    """Part -> 10 · log10(Σ fp32² / Σ (fp32 − int8)²) of what it gives, in dB; None where the two agree to the bit.

    Parts are the matmuls by a stored weight, bias included, and the LayerNormalizations, called as `exclude` calls them
    and in the order of the graph, of which both graphs have the tensor by its name; not a matmul by a weight that is cut
    into a matrix for each head. Channels that int8 has more than once count once: the channel_repeats come
    last. `feeds`: the models' inputs by name, padded batches [batch, length]; padding is left out.
    Memory is that of all parts' outputs for one batch, twice.
    """
    models = [onnx.load(path) for path in (fp32, int8)]
    shared = {name for node in models[1].graph.node for name in node.output}
    parts = [part for part in _parts(models[0].graph) if part.tensor in shared]
    if not parts:
        return {}
    tensors = list(dict.fromkeys(part.tensor for part in parts))
    signal: dict[str, float] = defaultdict(float)
    noise: dict[str, float] = defaultdict(float)
    full, low = (Sample(model, tensors, feeds) for model in models)
    with full, low:
        for expected, found in zip(full.batches(), low.batches(), strict=True):
            for part in parts:
                signal[part.name] += _square(expected[part.tensor])
                exact, rounded = expected[part.tensor], found[part.tensor]
                if part.widens:
                    rounded = rounded[..., : exact.shape[-1]]
                noise[part.name] += _square(exact - rounded)
    return {part.name: _decibels(signal[part.name], noise[part.name]) for part in parts}


def _parts(graph: GraphProto) -> list[_Part]:
    found, adds = matmuls(graph), biases(graph)
    parts = []
    for node in graph.node:
        if node.name in found.fp32:
            parts.append(_Part(node.name, adds.get(node.name, node).output[0], widens=True))
        elif node.op_type == "LayerNormalization":
            parts.append(_Part(node.name, node.output[0]))
    return parts


def _square(values: np.ndarray) -> float:
    return float(np.square(values, dtype=np.float64).sum())


def _decibels(signal: float, noise: float) -> float | None:
    return round(10 * float(np.log10(max(signal, _SMALLEST) / noise)), 2) if noise else None
