"""Find where a graph deviates from its checkpoint, for the message when the logits differ."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from onnx import ModelProto
from torch import Tensor

from ...graphs.model_files import write_model
from ...models.features.named import logits_of
from ...sessions.opening import open_session
from ...sessions.outputs import run_logits
from ..tracing import SEGMENTS, Traced, example
from .building import build_fast

_TOLERANCE = 3e-5  # for states and logits of about size 1: above the rounding of twelve layers, far below a mistake


def first_difference(traced: Traced, *, opset: int, unpadded: bool) -> str | None:
    """Return the first part, in order of computation, that differs from torch's on a small padded batch: `embeddings`,
    `layer 1` …, `head`; None if none does."""
    marked = build_fast(
        traced.model, kind=traced.kind, pairs=SEGMENTS in traced.inputs, opset=opset, unpadded=unpadded, marked=True
    )
    if marked is None:
        raise RuntimeError("only for a model that has a fast graph")
    inputs = example(traced, 2, min(6, traced.max_length))
    with torch.inference_mode():
        output = traced.model(**inputs, output_hidden_states=True)
    wanted = [*output.hidden_states, logits_of(traced.model, output, inputs["attention_mask"])]
    real = inputs["attention_mask"].bool().numpy()
    for (name, actual), expected in zip(_states(marked, inputs, traced.outputs).items(), wanted, strict=True):
        own, other = (_comparable_states(each, real, actual) for each in (actual, expected.numpy()))
        if not np.allclose(own, other, atol=_TOLERANCE, rtol=0):
            return name
    return None


def _comparable_states(states: np.ndarray, real: np.ndarray, graph_states: np.ndarray) -> np.ndarray:
    """Return what both sides have: all logits of texts; the first token if the graph has no other; else the real tokens."""
    if states.ndim == 2:
        return states
    return states[:, 0] if graph_states.shape[1] == 1 else states[real]


def _states(marked: ModelProto, inputs: dict[str, Tensor], outputs: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Map each part to its states; the head, which comes last, to the logits, which are the graph's `outputs`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "marked.onnx"
        write_model(marked, path)
        session = open_session(path)
    feed = {value.name: inputs[value.name].numpy() for value in session.get_inputs()}
    parts = [output.name for output in session.get_outputs() if output.name not in outputs]
    part_states = zip(parts, session.run(parts, feed), strict=True)
    return {name: np.asarray(states) for name, states in part_states} | {"head": run_logits(session, feed)}
