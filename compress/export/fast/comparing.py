"""Where a graph leaves the path of its checkpoint: for the message when the logits differ."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnx import ModelProto
from torch import Tensor

from ...graphs import write_model
from ...sessions import open_session
from .building import build_fast

_TOLERANCE = 1e-4  # of states whose size is about 1; what is wrong is far above


def first_difference(model: Any) -> str:
    """The first part, in the order in which they are computed, whose states differ from torch's: `embeddings`, `layer 1` …
    or `head`, after which nothing is left."""
    marked = build_fast(model, marked=True)
    if marked is None:
        raise RuntimeError("only for a model that has a fast graph")
    ids = torch.arange(1, 13).remainder(model.config.vocab_size - 1).reshape(2, 6) + 1
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    with torch.inference_mode():
        expected = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    parts = _states(marked, {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids)})
    for (name, states), wanted in zip(parts.items(), expected, strict=True):
        first_alone = states.shape[1] == 1  # the last layer
        own, other = (each[:, 0] if first_alone else each[mask.bool().numpy()] for each in (states, wanted.numpy()))
        if not np.allclose(own, other, atol=_TOLERANCE, rtol=0):
            return name
    return "head"


def _states(marked: ModelProto, inputs: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Part -> its states."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "marked.onnx"
        write_model(marked, path)
        session = open_session(path)
    names = [output.name for output in session.get_outputs() if output.name != "logits"]
    found = session.run(names, {value.name: inputs[value.name].numpy() for value in session.get_inputs()})
    return {name: np.asarray(states) for name, states in zip(names, found, strict=True)}
