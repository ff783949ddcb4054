"""Graphs of multiple choice models, fast, unpadded, plain and int8: rows of pairs in, a score for each out, as in torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering, slow
from family_teachers import POSITIONS, chooser_of
from plain_teachers import plain_chooser

from compress.export import export_onnx
from compress.export.forms import FORMS
from compress.export.tracing import describe, example
from compress.models.families import FAMILIES
from compress.quantize import quantize_onnx
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

FAST = [name for name, family in FAMILIES.items() if family.fast_graph and not family.layerless]
TASK: dict[str, Any] = {"task_name": "toy", "labels": (), "kind": "choice"}
SHAPES = [(1, 1), (2, 7), (4, POSITIONS)]
# A short run traces one plain graph of each form.
PLAIN = ["xlnet", *slow("deberta-v2", "bert", "modernbert", *FAST[1:])]


def checkpoint(family: str, folder: Path) -> Any:
    model = plain_chooser(family) if family in FORMS else chooser_of(family)
    model.save_pretrained(folder)
    return model


def run(path: Path, inputs: dict[str, Any]) -> np.ndarray:
    session = open_session(path, threads=1)
    (logits,) = session.run(["logits"], {value.name: inputs[value.name].numpy() for value in session.get_inputs()})
    return np.asarray(logits)


def agrees(model: Any, path: Path) -> None:
    traced = describe(model, "choice")
    for batch, length in SHAPES:
        inputs = example(traced, batch, length)
        with torch.inference_mode():
            expected = traced.model(**inputs).logits.numpy()
        logits = run(path, inputs)
        assert logits.shape == expected.shape == (batch, 1)
        np.testing.assert_allclose(logits, expected, rtol=0, atol=5e-6)  # fp32, sums in another order


@pytest.mark.parametrize(("family", "opset"), covering(FAST, [20, 23], ["mpnet"]))
def test_the_fast_graph_agrees_with_torch(family: str, opset: int, tmp_path: Path) -> None:
    model = checkpoint(family, tmp_path / "model")
    export_onnx(tmp_path / "model", tmp_path / "graph", graph="fast", opset=opset, **TASK)
    for name in ("model.onnx", "model_unpadded.onnx"):
        agrees(model, tmp_path / "graph" / name)
    (output,) = onnx.load(tmp_path / "graph" / "model.onnx").graph.output
    assert [axis.dim_value or axis.dim_param for axis in output.type.tensor_type.shape.dim] == ["batch", 1]


@pytest.mark.slow
@pytest.mark.parametrize("family", PLAIN)
def test_the_plain_graph_agrees_with_torch(family: str, tmp_path: Path) -> None:
    model = checkpoint(family, tmp_path / "model")
    info = export_onnx(tmp_path / "model", tmp_path / "graph", graph="plain", opset=20, **TASK)
    assert max(info["parity_max_abs_error"].values()) < 5e-6  # as above
    agrees(model, tmp_path / "graph" / "model.onnx")


@pytest.mark.parametrize("family", ["roberta", *slow("electra")])
def test_the_int8_graph_keeps_its_head_in_fp32(family: str, tmp_path: Path) -> None:
    model = checkpoint(family, tmp_path / "model")
    export_onnx(tmp_path / "model", tmp_path / "graph", graph="fast", opset=20, **TASK)
    info = quantize_onnx(tmp_path / "graph" / "model.onnx", tmp_path, Quantize(method="dynamic"))
    path = tmp_path / "model_quantized.onnx"
    pooled = {"roberta": "roberta.pooler.dense", "electra": "sequence_summary.summary"}[family]
    assert {"classifier/MatMul", f"{pooled}/MatMul"} <= set(info["stayed_fp32"])
    assert (
        info["int8_matmuls"] >= 6 * model.config.num_hidden_layers - 2
    )  # keys and values of the last layer may be absorbed
    inputs = example(describe(model, "choice"), 4, 12)
    with torch.inference_mode():
        expected = model(**inputs).logits.numpy()
    assert np.abs(run(path, inputs) - expected).max() < 0.3
