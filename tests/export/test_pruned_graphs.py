"""Graphs of models with some heads and neurons removed: every form against torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering, slow
from pruned_toys import FAMILIES, HEADS, NEURONS, WITHOUT_PARTS, whole

from compress.export import export_onnx
from compress.export.tracing import describe, example
from compress.pruning.removal import without_units
from compress.quantize import quantize_onnx
from compress.sessions.opening import open_session
from compress.sessions.outputs import run_logits
from compress.spec.quantization import Quantize

TASK: dict[str, Any] = {"task_name": "toy", "labels": ("LABEL_0", "LABEL_1", "LABEL_2"), "kind": "classification"}
KEPT = {"some": (HEADS, NEURONS), **WITHOUT_PARTS}


Checkpoint = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """Return a function: (family, what is kept) -> folder of a pruned checkpoint."""
    folders: dict[tuple[str, str], Path] = {}

    def make(family: str, kept: str) -> Path:
        if (family, kept) not in folders:
            folders[family, kept] = tmp_path_factory.mktemp(f"pruned-{family}")
            without_units(whole(family), *KEPT[kept]).save_pretrained(folders[family, kept])
        return folders[family, kept]

    return make


@pytest.mark.parametrize(
    ("family", "opset", "kept"), covering(FAMILIES, [(opset, kept) for opset in (20, 23) for kept in KEPT])
)
def test_fast_graphs_agree_with_torch(family: str, opset: int, kept: str, checkpoint: Checkpoint, tmp_path: Path):
    """Export itself refuses a graph that does not agree, and likewise the unpadded form."""
    info = export_onnx(checkpoint(family, kept), tmp_path, graph="fast", opset=opset, **TASK)
    assert info["parity_max_abs_error"] and info["unpadded_parity_max_abs_error"]


@pytest.mark.slow  # torch's exporter
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_plain_graphs_agree_with_torch(family: str, kept: str, checkpoint: Checkpoint, tmp_path: Path):
    assert export_onnx(checkpoint(family, kept), tmp_path, graph="plain", opset=20, **TASK)["parity_max_abs_error"]


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_nothing_is_computed_for_a_part_that_is_not_there(family: str, checkpoint: Checkpoint, tmp_path: Path):
    """No matmul, head mask or relative-position bias of a removed part is left in the file."""
    export_onnx(checkpoint(family, "attention first"), tmp_path, graph="fast", opset=20, **TASK)
    model = onnx.load(tmp_path / "model.onnx")
    names = [node.name for node in model.graph.node] + [each.name for each in model.graph.initializer]
    first = [name for name in names if "layer.0." in name]
    assert {name.rpartition("/")[2] for name in first if "/" in name} == {
        "MatMul",
        "Add",
        "Gelu",
        "Sum",
        "LayerNormalization",
    }
    assert not any(part in name for name in first for part in ("attention.self", "attention.attn.q", "Softmax"))
    assert sum("/Softmax" in name for name in names) == 1
    assert not [name for name in names if "layer.1.intermediate" in name or name.startswith("layer.1.output.dense/")]
    assert all(0 not in each.dims for each in model.graph.initializer)


def quantized(spec: Quantize, form: str | None, folder: Path, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, int]:
    """Return the logits of the int8 file, and the number of int8 matmuls."""
    info = quantize_onnx(folder / "model.onnx", folder, spec, int8_format=form, feeds=[inputs])
    path = folder / ("model_qdq.onnx" if form == "qdq" else "model_quantized.onnx")
    return run_logits(open_session(path), inputs), info["int8_matmuls"]


@pytest.mark.parametrize(("kept", "form"), covering(KEPT, ["static", "dynamic", "qdq", "smoothquant"]))
@pytest.mark.parametrize("family", ["bert", *slow("mpnet")])
def test_int8_is_near_fp32(family: str, kept: str, form: str, checkpoint: Checkpoint, tmp_path: Path):
    info = export_onnx(checkpoint(family, kept), tmp_path, graph="fast", opset=20, **TASK)
    model = without_units(whole(family), *KEPT[kept])
    inputs = {name: value.numpy() for name, value in example(describe(model), 3, 9).items()}
    with torch.inference_mode():
        expected = model(**example(describe(model), 3, 9)).logits.numpy()
    spec = Quantize.model_validate({"method": "static" if form == "qdq" else form})
    logits, matmuls = quantized(spec, "static" if form == "smoothquant" else form, tmp_path, inputs)
    # the pooler, the classifier, and keys and values of a last layer with attention have int8 weights only
    assert matmuls == info["weight_matmuls"] - (4 if KEPT[kept][0][1] else 2)
    assert np.abs(logits - expected).max() < 0.1 * np.abs(expected).max()
