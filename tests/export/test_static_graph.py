"""The graph of a static model: torch's logits from both forms and in int8, the file's size, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import slow
from tokenizers import Tokenizer
from transformers import AutoModelForSequenceClassification

from compress.export import export_onnx
from compress.export.fast import build_fast
from compress.models.checkpoints import save_checkpoint
from compress.models.pretrained import transformers_config
from compress.quantize import quantize_onnx
from compress.sessions import open_session
from compress.spec.quantization import Quantize

LABELS = ("no", "maybe", "yes")
ROWS = [[2, 7, 9, 3, 8, 3, 0, 0], [2, 3, 3, 0, 0, 0, 0, 0], [2, 3, 11, 3, 0, 0, 0, 0], [2, 5, 6, 7, 8, 4, 3, 3]]


@pytest.fixture(params=[1, 2])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path, toy_tokenizer: Tokenizer) -> Path:
    fields: dict[str, Any] = {
        "vocab_size": 4000,
        "hidden_size": 32,
        "intermediate_size": 24,
        "max_position_embeddings": 20,
    }
    fields |= {"special_token_ids": [0, 2, 3, 4], "separator_token_id": 3, "num_labels": 3, "texts": request.param}
    torch.manual_seed(4)
    model = AutoModelForSequenceClassification.from_config(transformers_config({"model_type": "static", **fields}))
    save_checkpoint(model.eval(), toy_tokenizer, tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


def exported(checkpoint: Path, graph: str) -> tuple[Path, dict[str, Any]]:
    out = checkpoint.parent / graph
    info = export_onnx(checkpoint, out, opset=20, task_name="toy", labels=LABELS, kind="classification", graph=graph)
    return out / "model.onnx", info


def logits(path: Path) -> np.ndarray:
    ids = np.array(ROWS)
    return np.asarray(
        open_session(path).run(["logits"], {"input_ids": ids, "attention_mask": (ids != 0).astype(int)})[0]
    )


@pytest.mark.parametrize("graph", ["fast", *slow("plain")])
def test_its_logits_are_torch_s(checkpoint: Path, graph: str) -> None:
    path, info = exported(checkpoint, graph)
    assert set(info["parity_max_abs_error"]) == {"1x1", "1x7", "3x19", "8x20"}
    assert max(info["parity_max_abs_error"].values()) < 1e-5
    assert info["unpadded_parity_max_abs_error"] == {}
    assert [each.name for each in checkpoint.parent.joinpath(graph).iterdir()] == ["model.onnx"]
    ids = torch.tensor(ROWS)
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=(ids != 0).long()).logits.numpy()
    np.testing.assert_allclose(logits(path), expected, atol=1e-5)  # fp32 sums in another order


@pytest.mark.parametrize("method", ["dynamic", "static", "smoothquant"])
def test_its_table_becomes_int8_by_rows(checkpoint: Path, method: str) -> None:
    path, _ = exported(checkpoint, "fast")
    ids = np.array(ROWS)
    feeds = [{"input_ids": ids, "attention_mask": (ids != 0).astype(int)}] * 8
    info = quantize_onnx(path, path.parent, Quantize(method=method), feeds=feeds)
    assert (info["int8_gathers"], info["fp32_gathers"], info["int8_matmuls"]) == (1, 0, 1)
    assert info["ratio_to_fp32"] < 0.32
    stored = {tensor.name: tensor for tensor in onnx.load(path.with_name("model_quantized.onnx")).graph.initializer}
    table = stored["static.word_embeddings.weight_quantized"]
    assert (table.data_type, list(table.dims)) == (onnx.TensorProto.INT8, [4000, 32])
    assert list(stored["static.word_embeddings.weight_scale"].dims) == [4000, 1]
    own, full = logits(path.with_name("model_quantized.onnx")), logits(path)
    assert 0 < np.abs(own - full).max() < 0.05 * np.abs(full).max()


@pytest.mark.parametrize("graph", ["fast", *slow("plain")])
def test_its_table_can_have_4_bits(checkpoint: Path, graph: str) -> None:
    path, _ = exported(checkpoint, graph)
    found = {}
    for bits in (8, 4):
        name = f"{bits}.onnx"
        info = quantize_onnx(path, path.parent, Quantize(method="dynamic", word_bits=bits), name=name)
        assert (info["int8_gathers"], info["int4_gathers"]) == ((1, 0) if bits == 8 else (0, 1))
        found[bits] = logits(path.with_name(name)), info["bytes"]
    saved = 4000 * (32 + 1 - (32 // 2 + 1))
    assert found[8][1] - found[4][1] == pytest.approx(saved, abs=4000)  # a few operators more
    full = logits(path)
    assert 0 < np.abs(found[4][0] - found[8][0]).max() < 0.2 * np.abs(full).max()


def test_it_has_no_unpadded_form(checkpoint: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint)
    assert build_fast(model, unpadded=True) is None
