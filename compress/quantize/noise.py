"""The noise that int8 brings into each part of a model: the same tensors of the fp32 and the int8 graph, side by side."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from ..graphs import constants, products, write_model
from ..sessions import open_session

Feed = dict[str, np.ndarray]
_SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class _Part:
    """A node and the tensor that it gives; `tokens`: whether that may be [batch, length, size]."""

    name: str
    tensor: str
    tokens: bool


def signal_to_noise(fp32: Path, int8: Path, feeds: Sequence[Feed]) -> dict[str, float | None]:
    """Part -> 10 · log10(Σ fp32² / Σ (fp32 − int8)²) of what it gives, in dB; None where the two agree to the bit.

    Parts are the products by a stored weight, bias included, and the LayerNormalizations, called as `exclude` calls them
    and in the order of the graph, of which both graphs have the tensor by its name. `feeds`: the models' inputs by name,
    padded batches [batch, length]; padding is left out. Memory is that of all parts' outputs for one batch, twice.
    """
    models = [onnx.load(path) for path in (fp32, int8)]
    shared = {name for node in models[1].graph.node for name in node.output}
    parts = [part for part in _parts(models[0].graph) if part.tensor in shared]
    if not parts:
        return {}
    tensors = list(dict.fromkeys(part.tensor for part in parts))
    signal: dict[str, float] = defaultdict(float)
    noise: dict[str, float] = defaultdict(float)
    with tempfile.TemporaryDirectory() as folder:
        sessions = [_opened(model, tensors, Path(folder) / f"{i}.onnx") for i, model in enumerate(models)]
        del models
        for feed in feeds:
            full, low = (_run(session, tensors, feed) for session in sessions)
            for part in parts:
                expected, found = (_real(states[part.tensor], part, feed) for states in (full, low))
                signal[part.name] += _square(expected)
                noise[part.name] += _square(expected - found)
    return {part.name: _decibels(signal[part.name], noise[part.name]) for part in parts}


def _parts(graph: GraphProto) -> list[_Part]:
    found, known = products(graph), constants(graph)
    weighted = {*found.fp32, *found.stacked}
    readers: dict[str, list[NodeProto]] = defaultdict(list)
    for node in graph.node:
        for name in node.input:
            readers[name].append(node)
    parts = []
    for node in graph.node:
        if node.name in weighted:
            add = _bias(readers[node.output[0]], known)
            parts.append(_Part(node.name, (add or node).output[0], node.name not in found.stacked))
        elif node.op_type == "LayerNormalization":
            parts.append(_Part(node.name, node.output[0], True))
    return parts


def _bias(readers: list[NodeProto], known: set[str]) -> NodeProto | None:
    """The Add of a constant that alone reads a product."""
    only = readers[0] if len(readers) == 1 else None
    return only if only is not None and only.op_type == "Add" and any(name in known for name in only.input) else None


def _opened(model: ModelProto, tensors: list[str], path: Path) -> Any:
    """A session that gives `tensors` out too; changes `model`."""
    given = {value.name for value in model.graph.output}
    model.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in tensors if name not in given
    )
    write_model(model, path)
    return open_session(path)


def _run(session: Any, tensors: list[str], feed: Feed) -> dict[str, np.ndarray]:
    names = [value.name for value in session.get_inputs()]
    found = session.run(tensors, {name: feed[name] for name in names})
    return dict(zip(tensors, map(np.asarray, found), strict=True))


def _real(states: np.ndarray, part: _Part, feed: Feed) -> np.ndarray:
    """Without padding, where there is a row for each token. The last layer of the fast graph has the first token's alone."""
    mask = feed["attention_mask"]
    return states[mask.astype(bool)] if part.tokens and states.ndim == 3 and states.shape[:2] == mask.shape else states


def _square(values: np.ndarray) -> float:
    return float(np.square(values, dtype=np.float64).sum())


def _decibels(signal: float, noise: float) -> float | None:
    return round(10 * float(np.log10(max(signal, _SMALLEST) / noise)), 2) if noise else None
