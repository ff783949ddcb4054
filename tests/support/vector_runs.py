"""A small finished run of a sentence encoder in a real store, made without torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bundle_making
import numpy as np
import onnx
from bundle_making import HIDDEN, VOCABULARY, Run
from onnx import TensorProto, helper, numpy_helper

from compress.graphs.model_files import set_metadata, write_model
from compress.quantize import quantize_onnx
from compress.results import write_result
from compress.spec.quantization import Quantize
from compress.spec.task import TaskSpec
from compress.store import Store
from compress.tasks import wordpiece

TASK = TaskSpec.model_validate(
    {
        "name": "toy-vectors",
        "kind": "embedding",
        "text": ["sentence1", "sentence2"],
        "label": "score",
        "metrics": ["spearman", "pearson"],
        "max_length": 24,
        "synthetic": {"generator": "similarity", "train": 40, "dev": 20},
    }
)
SCORES = {"dev": {"spearman": 50.0, "pearson": 50.0}}


def vector_graph(pooling: str = "mean") -> onnx.ModelProto:
    """Return a graph whose states are each token's row times one matrix, and whose vectors are their mean, or the first state,
    normalized."""
    rng, node = np.random.default_rng(0), helper.make_node
    states = [
        node("Gather", ["words", "input_ids"], ["rows"], name="words/Gather"),
        node("MatMul", ["rows", "first"], ["product"], name="first/MatMul"),
        node("LayerNormalization", ["product", "scale", "shift"], ["all"], name="LayerNorm"),
    ]
    mean = [
        node("Identity", ["all"], ["last_hidden_state"], name="Identity"),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT, name="Cast"),
        node("Unsqueeze", ["mask", "last"], ["column"], name="Unsqueeze"),
        node("Mul", ["all", "column"], ["kept"], name="Mul"),
        node("ReduceSum", ["kept", "middle"], ["pooled"], keepdims=0, name="ReduceSum"),
    ]
    cls = [
        node("Slice", ["all", "zero", "middle", "middle"], ["last_hidden_state"], name="Slice"),
        node("Squeeze", ["last_hidden_state", "middle"], ["pooled"], name="Squeeze"),
    ]
    length = [
        node("ReduceL2", ["pooled", "middle"], ["length"], keepdims=1, name="ReduceL2"),
        node("Div", ["pooled", "length"], ["sentence_embedding"], name="Div"),
    ]
    constants: dict[str, Any] = {
        "words": rng.normal(size=(VOCABULARY, HIDDEN)).astype(np.float32),
        "first": (rng.normal(size=(HIDDEN, HIDDEN)) / 4).astype(np.float32),
        "scale": rng.uniform(0.5, 2, HIDDEN).astype(np.float32),
        "shift": rng.normal(size=HIDDEN).astype(np.float32),
        "middle": np.array([1]),
        **({"last": np.array([2])} if pooling == "mean" else {"zero": np.array([0])}),
    }
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"])
        for n in ("input_ids", "attention_mask")
    ]
    shapes = {
        "last_hidden_state": ["batch", "length" if pooling == "mean" else 1, HIDDEN],
        "sentence_embedding": ["batch", HIDDEN],
    }
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(
        [*states, *(mean if pooling == "mean" else cls), *length], "vectors", inputs, outputs, tensors
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    set_metadata(model, {"task": TASK.name, "kind": TASK.kind, "labels": "[]", "max_length": str(TASK.max_length)})
    return model


def make_vector_run(root: Path, pooling: str | None = "mean", **config: Any) -> Run:
    """Write a run with the teacher in fp32 and the student in fp32 and int8. Scores and latencies are made up. `config`: more
    fields of config.json."""
    store = Store(root / "store")
    fields = {"model_type": "distilbert", "architectures": ["DistilBertModel"], "vocab_size": VOCABULARY, "dim": HIDDEN}
    fields |= {"pad_token_id": 0, "max_position_embeddings": 64, "sentence_pooling": pooling, **config}

    def student(out: Path, work: Path) -> dict[str, Any]:
        (out / "config.json").write_text(json.dumps(fields))
        wordpiece(VOCABULARY).save(str(out / "tokenizer.json"))
        (out / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]"}))
        (out / "model.safetensors").write_bytes(b"weights")
        return {}

    def fp32(out: Path, work: Path) -> dict[str, Any]:
        write_model(vector_graph(pooling or "mean"), out / "model.onnx")
        return {}

    checkpoint, exported = store.build("c" * 32, student, describe={}), store.build("e" * 32, fp32, describe={})
    quantized = store.build(
        "f" * 32,
        lambda out, work: quantize_onnx(exported.path / "model.onnx", out, Quantize(method="dynamic")),
        describe={},
    )
    files = {"fp32": exported.path / "model.onnx", "int8": quantized.path / "model_quantized.onnx"}
    models = [bundle_making._model("teacher", "fp32", files["fp32"], SCORES)]
    models += [bundle_making._model("student", precision, path, SCORES) for precision, path in files.items()]
    folder = root / "runs" / "vectors-0"
    folder.mkdir(parents=True)
    paths = {p: {"onnx": str(file.relative_to(store.root)), "checkpoint": "c" * 32} for p, file in files.items()}
    entries = {"teacher-fp32": paths["fp32"], "student-fp32": paths["fp32"], "student-int8": paths["int8"]}
    (folder / "models.json").write_text(json.dumps(entries))
    write_result(bundle_making._result(folder.name, TASK, models, "someone/teacher"), folder)
    return Run(folder, store.root, TASK, checkpoint.path)
