"""A folder with a small network, quick to make, that gives each text its own logits; and texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from compress.tasks import wordpiece

LABELS = ("no", "maybe", "yes")
WORDS = ["a", "short", "text", "with", "some", "words", "in", "it", ",", "then", "more", "until", "it", "is", "cut"]
SINGLES = [
    "plain words",
    "",
    "Café naïve ÀÉÎ — Straße",
    "emoji 😀🎉 and 雨が降る и ветер",
    " \t tabs\nand\r\nlines ",
    "[SEP] [CLS] [MASK] typed by a user",
    " ".join(WORDS * 50),
    "x" * 3000,
]
PAIRS = [(one, other) for one, other in zip(SINGLES, reversed(SINGLES), strict=True)] + [
    ("", ""),
    ("a", " ".join(WORDS * 9)),
]


def tokenizer_file(path: Path) -> None:
    """Save a tokenizer with fixed padding and truncation, as sentence encoders have; both must be overridden."""
    tokenizer = wordpiece(120)
    tokenizer.enable_padding(length=11)
    tokenizer.enable_truncation(9)
    tokenizer.save(str(path))


def bag(
    folder: Path,
    logits_bias: tuple[float, ...] = (0.0, 0.0, 0.0),
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
    infinite: str | None = None,
) -> Path:
    """Write a folder whose logits are the sum of a row for each word, plus a bias; infinite for the word `infinite`."""
    rng = np.random.default_rng(0)
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["rows"]),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["column"]),
        node("Mul", ["rows", "column"], ["kept"]),
        node("ReduceSum", ["kept", "middle"], ["sum"], keepdims=0),
        node("Add", ["sum", "bias"], ["logits"]),
    ]
    constants = {"words": rng.normal(size=(120, len(logits_bias))).astype(np.float32)}
    if infinite:
        constants["words"][wordpiece(120).token_to_id(infinite)] = np.inf
    constants |= {"bias": np.array(logits_bias, np.float32), "last": np.array([2]), "middle": np.array([1])}
    typed = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(logits_bias)])
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "bag", typed, [output], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (folder / "onnx").mkdir(parents=True)
    onnx.save(model, str(folder / "onnx" / "model.onnx"))
    names = {str(i): LABELS[i] for i in range(len(logits_bias))}
    (folder / "config.json").write_text(
        json.dumps({"id2label": names, "max_position_embeddings": 24, "pad_token_id": 0})
    )
    tokenizer_file(folder / "tokenizer.json")
    return folder


def describe(folder: Path, **fields: Any) -> None:
    (folder / "bundle.json").write_text(json.dumps(fields))
