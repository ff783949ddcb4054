"""Settings, texts and logits for graphs of question answering models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from family_teachers import POSITIONS, reader_of

from compress.export.tracing import Traced, describe
from compress.models.families import FAMILIES
from compress.sessions.opening import open_session

FAST = [name for name, family in FAMILIES.items() if family.fast_graph and not family.layerless]
TASK: dict[str, Any] = {"opset": 20, "task_name": "toy", "labels": ("start", "end"), "kind": "span"}
OUTPUTS = ["start_logits", "end_logits"]
SHAPES = [(1, 1), (1, 2), (2, 7), (3, 19), (5, POSITIONS)]
LENGTHS = (14, 9, 3, 1, 14, 7)


def logits(path: Path, feed: dict[str, np.ndarray]) -> np.ndarray:
    """Return the logits [batch, length, 2], computed with ONNX Runtime only."""
    session = open_session(path, threads=1)
    sides = session.run(OUTPUTS, {value.name: feed[value.name] for value in session.get_inputs()})
    return np.stack([np.asarray(side) for side in sides], axis=-1)


def traced_of(family: str) -> Traced:
    return describe(reader_of(family), "span")


def arrays(inputs: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in inputs.items()}


def texts() -> dict[str, np.ndarray]:
    mask = (np.arange(14) < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids = np.random.default_rng(0).integers(7, 80, mask.shape)
    types = (np.arange(14) > 4) * mask
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": types}


def shapes_of(path: Path) -> dict[str, list[Any]]:
    outputs = onnx.load(path, load_external_data=False).graph.output
    return {
        value.name: [axis.dim_value or axis.dim_param for axis in value.type.tensor_type.shape.dim] for value in outputs
    }
