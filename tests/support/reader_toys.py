"""A folder whose network scores each token as the start and end of an answer by itself, quick to make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from runtime_toys import tokenizer_file

from compress.tasks import wordpiece

# Amounts added to the start and end logits of a word; [CLS] means no answer.
SAYS = {"the": (20.0, 0.0), "guy": (0.0, 20.0), "in": (12.0, 12.0), "[CLS]": (5.0, 5.0)}


def rows(says: Mapping[str, tuple[float, float]], scale: float) -> np.ndarray:
    """Return float32 [token, 2]: the two logits of each token of the vocabulary."""
    own, rng = wordpiece(120), np.random.default_rng(0)
    table = (scale * rng.normal(size=(120, 2))).astype(np.float32)
    for word, logits in says.items():
        table[own.token_to_id(word)] += np.array(logits, np.float32)
    return table


def finder(
    folder: Path,
    says: Mapping[str, tuple[float, float]] | None = None,
    scale: float = 0.1,
    max_length: int = 24,
    architecture: str = "BertForQuestionAnswering",
    swapped: bool = False,
) -> Path:
    """Write a folder whose graph takes a token's `start_logits` and `end_logits` from its row of `rows`. `swapped`: the other
    output order."""
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["both"]),
        node("Split", ["both"], ["start", "end"], axis=2, num_outputs=2),
        node("Squeeze", ["start", "last"], ["start_logits"]),
        node("Squeeze", ["end", "last"], ["end_logits"]),
    ]
    constants = {"words": rows(SAYS if says is None else says, scale), "last": np.array([2])}
    typed = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "attention_mask")
    ]
    names = ("end_logits", "start_logits") if swapped else ("start_logits", "end_logits")
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "length"]) for name in names]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "finder", typed, outputs, tensors)
    (folder / "onnx").mkdir(parents=True)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10),
        str(folder / "onnx" / "model.onnx"),
    )
    config: dict[str, Any] = {"id2label": {"0": "start", "1": "end"}, "pad_token_id": 0}
    config |= {"architectures": [architecture], "max_position_embeddings": max_length}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer_file(folder / "tokenizer.json")
    return folder
