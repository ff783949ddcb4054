"""A folder whose network labels each token by itself and the token before it, quick to make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from runtime_toys import tokenizer_file

from compress.tasks import wordpiece

LABELS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
SAYS = {
    "the": "B-PER",
    "guy": "I-PER",
    "in": "B-LOC",
    "that": "I-LOC",
    "so": "O",
    ",": "O",
    ".": "O",
}


def chain(
    folder: Path,
    labels: tuple[str, ...] = LABELS,
    says: dict[str, str] | None = None,
    infinite: str | None = None,
    max_length: int = 24,
    scale: float = 1.0,
) -> Path:
    """Write a folder whose logits for a token are its own row plus half of the row of the token before it. `says`: word -> the
    label whose logit is raised by 20; `infinite`: a word whose row is infinite."""
    rng, own = np.random.default_rng(0), wordpiece(120)
    rows = (scale * rng.normal(size=(120, len(labels)))).astype(np.float32)
    for word, label in (says or {}).items():
        rows[own.token_to_id(word), labels.index(label)] += 20
    if infinite:
        rows[own.token_to_id(infinite)] = np.inf
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["rows"]),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["column"]),
        node("Mul", ["rows", "column"], ["kept"]),
        node("Pad", ["kept", "shift"], ["before"]),
        node("Mul", ["before", "half"], ["context"]),
        node("Add", ["kept", "context"], ["logits"]),
    ]
    shift = np.array([0, 1, 0, 0, -1, 0])
    constants = {"words": rows, "last": np.array([2]), "shift": shift, "half": np.array(0.5, np.float32)}
    inputs = ("input_ids", "attention_mask")
    typed = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "length", len(labels)])
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "chain", typed, [output], tensors)
    (folder / "onnx").mkdir(parents=True)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10),
        str(folder / "onnx" / "model.onnx"),
    )
    config: dict[str, Any] = {"id2label": {str(i): name for i, name in enumerate(labels)}, "pad_token_id": 0}
    config |= {"architectures": ["BertForTokenClassification"], "max_position_embeddings": max_length}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer_file(folder / "tokenizer.json")
    return folder
