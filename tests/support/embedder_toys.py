"""A folder whose network returns the normalized mean of each text's token rows, quick to make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from runtime_toys import tokenizer_file

from compress.tasks import wordpiece

WIDTH, TOKENS = 8, 120


def rows(width: int = WIDTH, infinite: str | None = None) -> np.ndarray:
    """Return float32 [token, width], infinite for the word `infinite`."""
    table = np.random.default_rng(0).normal(size=(TOKENS, width)).astype(np.float32)
    if infinite:
        table[wordpiece(TOKENS).token_to_id(infinite)] = np.inf
    return table


def averages(
    folder: Path, *, width: int = WIDTH, infinite: str | None = None, outputs: tuple[str, ...] = (), **config: Any
) -> Path:
    """Write the folder. `outputs`: of the graph, both by default. `config`: more fields of config.json."""
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["last_hidden_state"], name="words/Gather"),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["column"]),
        node("Mul", ["last_hidden_state", "column"], ["kept"]),
        node("ReduceSum", ["kept", "middle"], ["sum"], keepdims=0),
        node("ReduceL2", ["sum", "middle"], ["length"], keepdims=1),
        node("Div", ["sum", "length"], ["sentence_embedding"]),
    ]
    constants = {"words": rows(width, infinite), "last": np.array([2]), "middle": np.array([1])}
    inputs = ("input_ids", "attention_mask")
    shapes = {"last_hidden_state": ["batch", "length", width], "sentence_embedding": ["batch", width]}
    typed = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs]
    typed_outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shapes[n]) for n in outputs or shapes]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "averages", typed, typed_outputs, tensors)
    (folder / "onnx").mkdir(parents=True)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10),
        str(folder / "onnx" / "model.onnx"),
    )
    fields = {"architectures": ["BertModel"], "max_position_embeddings": 24, "pad_token_id": 0, "hidden_size": width}
    (folder / "config.json").write_text(json.dumps(fields | {"sentence_pooling": "mean"} | config))
    tokenizer_file(folder / "tokenizer.json")
    return folder


def expected(texts: list[str], limit: int = 24) -> np.ndarray:
    """Return [text, WIDTH], computed for each text alone, truncated at its end."""
    tokenizer, table = wordpiece(TOKENS), rows().astype(np.float64)
    tokenizer.enable_truncation(limit)
    means = [table[tokenizer.encode(text).ids].mean(axis=0) for text in texts]
    return np.stack([mean / np.linalg.norm(mean) for mean in means])
