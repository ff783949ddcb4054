"""A small finished run in a real store, made without torch: a bag-of-words network in place of a BERT."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from compress.bundle import BundleInfo, Report, read_bundle
from compress.bundle.document import write_bundle
from compress.bundle.files import measure
from compress.graphs.model_files import set_metadata, write_model
from compress.machine import versions
from compress.quantize import quantize_onnx
from compress.results import Data, Latency, Machine, ModelResult, Result, Runtime, TaskInfo, write_result
from compress.results.fidelity import Delta
from compress.runtime import Classifier
from compress.spec.quantization import Quantize
from compress.spec.task import TaskSpec
from compress.store import Store
from compress.tasks import BUILTIN_TASKS, headline, load_reported, load_training, score, wordpiece

VOCABULARY, HIDDEN = 300, 48


@dataclass(frozen=True)
class Run:
    folder: Path
    store: Path
    task: TaskSpec
    checkpoint: Path


def graph(labels: tuple[str, ...], kind: str, pair: bool, seed: int = 0) -> onnx.ModelProto:
    """Return a graph of logits = W2 · relu(W1 · mean of the tokens' rows); for pairs a row per segment is added."""
    rng = np.random.default_rng(seed)
    weights = {
        "words": rng.normal(size=(VOCABULARY, HIDDEN)),
        "segments": rng.normal(size=(2, HIDDEN)),
        "first": rng.normal(size=(HIDDEN, HIDDEN)) / 4,
        "second": rng.normal(size=(HIDDEN, len(labels) or 1)),
    }
    if not pair:
        del weights["segments"]
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if pair else [])]
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["rows"], name="words/Gather"),
        *([node("Gather", ["segments", "token_type_ids"], ["types"], name="segments/Gather")] if pair else []),
        *([node("Add", ["rows", "types"], ["both"], name="Add")] if pair else []),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT, name="Cast"),
        node("Unsqueeze", ["mask", "last"], ["column"], name="Unsqueeze"),
        node("Mul", ["both" if pair else "rows", "column"], ["kept"], name="Mul"),
        node("ReduceSum", ["kept", "middle"], ["sum"], keepdims=0, name="ReduceSum"),
        node("ReduceSum", ["column", "middle"], ["count"], keepdims=0, name="ReduceSum_1"),
        node("Div", ["sum", "count"], ["mean"], name="Div"),
        node("MatMul", ["mean", "first"], ["hidden"], name="first/MatMul"),
        node("Relu", ["hidden"], ["positive"], name="Relu"),
        node("MatMul", ["positive", "second"], ["logits"], name="second/MatMul"),
    ]
    constants = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    constants += [numpy_helper.from_array(np.array([axis], np.int64), n) for n, axis in (("last", 2), ("middle", 1))]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(labels) or 1])]
    opset = [helper.make_opsetid("", 20)]
    model = helper.make_model(helper.make_graph(nodes, "bag", inputs, outputs, constants), opset_imports=opset)
    model.ir_version = 10
    set_metadata(model, {"task": "bag", "kind": kind, "labels": json.dumps(list(labels)), "max_length": "64"})
    return model


def write_checkpoint(out: Path, labels: tuple[str, ...], **tokenizer: Any) -> None:
    """`tokenizer`: more fields of tokenizer_config.json."""
    names = labels or ("score",)
    config: dict[str, Any] = {"model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"]}
    config |= {"vocab_size": VOCABULARY, "pad_token_id": 0, "max_position_embeddings": 64, "_name_or_path": "a/b"}
    config |= {"id2label": {str(i): name for i, name in enumerate(names)}, "num_labels": len(names)}
    (out / "config.json").write_text(json.dumps(config))
    wordpiece(VOCABULARY).save(str(out / "tokenizer.json"))
    (out / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "TokenizersBackend", "pad_token": "[PAD]", **tokenizer})
    )
    (out / "model.safetensors").write_bytes(b"weights")


def make_run(
    root: Path,
    task_name: str = "toy-sentiment",
    *,
    seed: int = 0,
    hub: str | None = "someone/teacher",
    **tokenizer: Any,
) -> Run:
    """Write a run with the teacher in fp32 and the student in fp32 and int8. Scores are measured; latencies are made up.
    `tokenizer`: as for `write_checkpoint`."""
    task = BUILTIN_TASKS[task_name]
    labels, store = task.labels or (), Store(root / "store")

    def student(out: Path, work: Path) -> dict[str, Any]:
        write_checkpoint(out, labels, **tokenizer)
        return {}

    def fp32(out: Path, work: Path) -> dict[str, Any]:
        write_model(graph(labels, task.kind, len(task.text) == 2, seed), out / "model.onnx")
        return {}

    checkpoint = store.build("c" * 32, student, describe={})
    exported = store.build("e" * 32, fp32, describe={})
    quantized = store.build(
        "f" * 32,
        lambda out, work: quantize_onnx(exported.path / "model.onnx", out, Quantize(method="dynamic")),
        describe={},
    )
    onnx_files = {"fp32": exported.path / "model.onnx", "int8": quantized.path / "model_quantized.onnx"}
    scores = {p: _scores(root / f"probe-{p}", task, checkpoint.path, path) for p, path in onnx_files.items()}
    models = [_model("teacher", "fp32", onnx_files["fp32"], scores["fp32"])]
    models += [_model("student", p, path, scores[p]) for p, path in onnx_files.items()]
    folder = root / "runs" / f"bag-{task_name}-0"
    folder.mkdir(parents=True)
    paths = {p: {"onnx": str(f.relative_to(store.root)), "checkpoint": "c" * 32} for p, f in onnx_files.items()}
    entries = {"teacher-fp32": paths["fp32"], "student-fp32": paths["fp32"], "student-int8": paths["int8"]}
    (folder / "models.json").write_text(json.dumps(entries))
    write_result(_result(folder.name, task, models, hub), folder)
    return Run(folder, store.root, task, checkpoint.path)


def _scores(folder: Path, task: TaskSpec, checkpoint: Path, path: Path) -> dict[str, dict[str, float]]:
    folder.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_bytes((checkpoint / name).read_bytes())
    (folder / "bundle.json").write_text(json.dumps({"max_length": task.max_length, "text_columns": task.text}))
    (folder / path.name).write_bytes(path.read_bytes())
    data = load_reported(task, None, None)
    dev = data.splits["dev"]
    texts = dev.texts[0] if len(dev.texts) == 1 else list(zip(*dev.texts, strict=True))
    return {
        "dev": score(
            task, data.labels, Classifier(folder, threads=1).logits(texts, batch_size=64, tokens=4096), dev.labels
        )
    }  # type: ignore[arg-type]


def _model(name: str, precision: Any, path: Path, scores: dict[str, dict[str, float]]) -> ModelResult:
    shapes = [(0, 0), (1, 32)]
    latency = [
        Latency(batch=b, length=n, p50=1.25, p90=2, p99=3, examples_per_second=800, speedup=2.5, runs=30)
        for b, n in shapes
    ]
    return ModelResult(
        name=name,
        precision=precision,
        architecture="2 x 48",
        parameters=17_000,
        embedding_parameters=14_400,
        flops_per_token=5000,
        flops_per_example=50_000,
        file_bytes=path.stat().st_size,
        scores=scores,
        headline=headline(scores["dev"]),
        delta=None if name == "teacher" else Delta(points=-0.25, low=-1.5, high=1.0, mcnemar_p=None),
        predictions=f"{name}-{precision}",
        onnx=Runtime(latency=tuple(latency), peak_memory_bytes=10**8, load_ms=5, threads=1),
    )


def _result(name: str, task: TaskSpec, models: list[ModelResult], hub: str | None) -> Result:
    data = load_training(task, None, None)
    return Result(
        run=name,
        created="2025-01-01T00:00:00+00:00",
        command="compress run bag",
        recipe={"name": "bag", "stages": []},
        teacher="bag",
        student="bag",
        seed=0,
        task=TaskInfo(
            name=task.name,
            title=task.title or task.name,
            kind=task.kind,
            labels=data.labels,
            metrics=task.metrics,
            splits=("dev",),
            data=Data(source=data.source, rows={"train": len(data.train)}, notes=(), fingerprint=data.fingerprint),
        ),
        machine=Machine.here(),
        versions=versions(),
        stages=(),
        models=tuple(models),
        noise=(),
        settings={
            "max_length": task.max_length,
            "text": list(task.text),
            "teacher_hub": hub,
            "teacher_licence": "Apache-2.0" if hub else "unknown",
        },
    )


def failed(report: Report) -> dict[str, str]:
    assert not report.passed
    return {check.name: check.detail for check in report.checks if not check.passed}


def reseal(folder: Path, **changes: Any) -> None:
    """Seal a bundle again with new hashes and a new digest, as someone would who changes it on purpose."""
    files = changes.pop("files", None) or measure(folder)
    info = BundleInfo.model_validate(read_bundle(folder).model_dump() | changes)
    write_bundle(info.model_copy(update={"files": files}), folder)
