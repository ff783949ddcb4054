"""Graphs of models whose layers have kept some of their heads and neurons: every form against torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pruned_toys import FAMILIES, HEADS, NEURONS, whole

from compress.export import export_onnx
from compress.export.tracing import describe, example
from compress.pruning.removal import without_units
from compress.quantize import quantize_onnx
from compress.sessions import open_session, run_logits
from compress.spec.quantization import Quantize

TASK: dict[str, Any] = {"task_name": "toy", "labels": ("LABEL_0", "LABEL_1", "LABEL_2"), "kind": "classification"}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """family -> folder of a pruned checkpoint."""
    made: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp(f"pruned-{family}")
            without_units(whole(family), HEADS, NEURONS).save_pretrained(made[family])
        return made[family]

    return make


@pytest.mark.parametrize("opset", [20, 23])
@pytest.mark.parametrize("family", FAMILIES)
def test_fast_graphs_agree_with_torch(family: str, opset: int, checkpoint: Callable[[str], Path], tmp_path: Path):
    """Which export refuses itself where they do not; so too their unpadded forms."""
    info = export_onnx(checkpoint(family), tmp_path, graph="fast", opset=opset, **TASK)
    assert info["parity_max_abs_error"] and info["unpadded_parity_max_abs_error"]


@pytest.mark.slow  # torch's exporter
@pytest.mark.parametrize("family", ["distilbert", "mpnet"])
def test_plain_graphs_agree_with_torch(family: str, checkpoint: Callable[[str], Path], tmp_path: Path):
    assert export_onnx(checkpoint(family), tmp_path, graph="plain", opset=20, **TASK)["parity_max_abs_error"]


@pytest.mark.parametrize("form", ["dynamic", "static", "qdq"])
@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_int8_is_near_fp32(family: str, form: str, checkpoint: Callable[[str], Path], tmp_path: Path):
    info = export_onnx(checkpoint(family), tmp_path, graph="fast", opset=20, **TASK)
    model = without_units(whole(family), HEADS, NEURONS)
    inputs = {name: value.numpy() for name, value in example(describe(model), 3, 9).items()}
    with torch.inference_mode():
        expected = model(**example(describe(model), 3, 9)).logits.numpy()
    spec = Quantize(method="dynamic" if form == "dynamic" else "static")
    found = quantize_onnx(tmp_path / "model.onnx", tmp_path, spec, int8_format=form, feeds=[inputs])
    path = tmp_path / ("model_qdq.onnx" if form == "qdq" else "model_quantized.onnx")
    # keys, values and, of a BERT, the pooler of the last layer have int8 weights alone
    assert found["int8_matmuls"] == info["weight_matmuls"] - 4
    assert np.abs(run_logits(open_session(path), inputs) - expected).max() < 0.1 * np.abs(expected).max()
