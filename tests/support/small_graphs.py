"""Small graphs over the rows of a table, whose logits have a row for each token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from compress.graphs.model_files import write_model
from compress.sessions.opening import open_session

Feeds = list[dict[str, np.ndarray]]


def model_of(nodes: Sequence[NodeProto], stored: Mapping[str, np.ndarray], out: int) -> ModelProto:
    """Return a model from `input_ids` and `attention_mask` to `logits` [text, token, out]."""
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "l"]) for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", "l", out])
    tensors = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(list(nodes), "g", inputs, [output], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def every_row(rows: int, texts: int) -> Feeds:
    """Return one batch that looks up each row of the table once."""
    ids = np.arange(rows).reshape(texts, -1)
    return [{"input_ids": ids, "attention_mask": np.ones_like(ids)}]


def logits_of(path: Path, feeds: Feeds) -> np.ndarray:
    session = open_session(path, threads=1)
    names = [value.name for value in session.get_inputs()]
    return np.concatenate([np.asarray(session.run(["logits"], {n: feed[n] for n in names})[0]) for feed in feeds])


def logits(model: ModelProto, folder: Path, feeds: Feeds) -> np.ndarray:
    write_model(model, folder / "m.onnx")
    return logits_of(folder / "m.onnx", feeds)
