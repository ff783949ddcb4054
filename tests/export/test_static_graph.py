"""Graphs of static models: both forms and int8 agree with torch, the file's size, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import slow
from exact_sums import SEVEN_BITS
from tokenizers import Tokenizer
from transformers import AutoModel, AutoModelForSequenceClassification, AutoModelForTokenClassification

from compress.errors import CompressError
from compress.export import export_onnx
from compress.export.fast import build_fast
from compress.models.checkpoints.folders import save_checkpoint
from compress.models.checkpoints.pretrained import transformers_config
from compress.models.features.named import compute_features
from compress.quantize import quantize_onnx
from compress.sessions.opening import open_session
from compress.spec.kinds import KindName
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


def exported(checkpoint: Path, graph: str, kind: KindName = "classification") -> tuple[Path, dict[str, Any]]:
    out, labels = checkpoint.parent / graph, () if kind == "embedding" else LABELS
    info = export_onnx(checkpoint, out, opset=20, task_name="toy", labels=labels, kind=kind, graph=graph)
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
    info = quantize_onnx(path, path.parent, Quantize(method=method, reduce_range=SEVEN_BITS), feeds=feeds)
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
    by_bits = {}
    for bits in (8, 4):
        name = f"{bits}.onnx"
        info = quantize_onnx(path, path.parent, Quantize(method="dynamic", word_bits=bits), name=name)
        assert (info["int8_gathers"], info["int4_gathers"]) == ((1, 0) if bits == 8 else (0, 1))
        by_bits[bits] = logits(path.with_name(name)), info["bytes"]
    saved = 4000 * (32 + 1 - (32 // 2 + 1))
    assert by_bits[8][1] - by_bits[4][1] == pytest.approx(saved, abs=4000)  # and a few more operators
    full = logits(path)
    assert 0 < np.abs(by_bits[4][0] - by_bits[8][0]).max() < 0.2 * np.abs(full).max()


def test_it_has_no_unpadded_form(checkpoint: Path) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint)
    assert build_fast(model, unpadded=True) is None


OTHERS: dict[KindName, tuple[Any, dict[str, Any]]] = {
    "tagging": (AutoModelForTokenClassification, {"window": 2}),
    "embedding": (AutoModel, {"sentence_pooling": "mean"}),
}


def model_for(kind: KindName, folder: Path, tokenizer: Tokenizer, **fields: Any) -> Any:
    """Save a model in `folder`/checkpoint and return it."""
    own: dict[str, Any] = {"vocab_size": 4000, "hidden_size": 32, "intermediate_size": 24}
    own |= {"max_position_embeddings": 20, "special_token_ids": [0, 2, 3, 4], "separator_token_id": 3, "num_labels": 3}
    auto, more = OTHERS[kind]
    torch.manual_seed(5)
    model = auto.from_config(transformers_config({"model_type": "static", **own, **more, **fields}))
    save_checkpoint(model.eval(), tokenizer, folder / "checkpoint")
    return model


def outputs(path: Path, name: str, ids: np.ndarray) -> np.ndarray:
    feed = {"input_ids": ids, "attention_mask": (ids != 0).astype(int)}
    return np.asarray(open_session(path).run([name], feed)[0])


@pytest.mark.parametrize(
    ("kind", "graph", "window"),
    [("tagging", "fast", 2), ("tagging", "fast", 0), ("embedding", "fast", 0), *slow(("tagging", "plain", 2), ("embedding", "plain", 0))],
)  # fmt: skip
def test_taggers_and_sentence_encoders_answer_as_torch_does(
    kind: KindName, graph: str, window: int, tmp_path: Path, toy_tokenizer: Tokenizer
) -> None:
    model = model_for(kind, tmp_path, toy_tokenizer, window=window)
    path, info = exported(tmp_path / "checkpoint", graph, kind)
    assert set(info["parity_max_abs_error"]) == {"1x1", "1x7", "3x19", "8x20"}
    assert max(info["parity_max_abs_error"].values()) < 1e-5 and info["unpadded_parity_max_abs_error"] == {}
    ids = np.array(ROWS)
    inputs = {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor((ids != 0).astype(int))}
    with torch.no_grad():
        expected = compute_features(model, inputs, ["logits"])["logits"].numpy()
    real = (ids != 0) if kind == "tagging" else slice(None)
    actual = outputs(path, "logits" if kind == "tagging" else "sentence_embedding", ids)
    np.testing.assert_allclose(actual[real], expected[real], atol=1e-5)  # fp32 sums in another order


@pytest.mark.parametrize("vocabulary", [4000, 100])  # short tables are stored around their centre
def test_a_sentence_encoder_s_table_is_all_that_becomes_int8(
    vocabulary: int, tmp_path: Path, toy_tokenizer: Tokenizer
) -> None:
    model_for("embedding", tmp_path, toy_tokenizer, vocab_size=vocabulary)
    path, _ = exported(tmp_path / "checkpoint", "fast", "embedding")
    ids = np.array(ROWS)
    feeds = [{"input_ids": ids, "attention_mask": (ids != 0).astype(int)}]
    info = quantize_onnx(path, path.parent, Quantize(method="smoothquant"), feeds=feeds)
    assert (info["int8_gathers"], info["fp32_gathers"], info["int8_matmuls"]) == (1, 0, 0)
    int8 = path.with_name("model_quantized.onnx")
    own, full = (outputs(file, "sentence_embedding", ids) for file in (int8, path))
    assert not own[1].any() and not full[1].any()  # the text without words
    cosines = (own * full).sum(1)[[0, 2, 3]]
    assert (cosines > 0.999).all() and not np.array_equal(own, full)
    states, mask = outputs(int8, "last_hidden_state", ids), (ids != 0)[..., None]
    pooled = (states * mask).sum(1)
    np.testing.assert_allclose(
        pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12), own, atol=1e-6
    )


def test_a_table_that_stays_fp32_leaves_nothing_to_quantize(tmp_path: Path, toy_tokenizer: Tokenizer) -> None:
    model_for("embedding", tmp_path, toy_tokenizer)
    path, _ = exported(tmp_path / "checkpoint", "fast", "embedding")
    for spec, message in (
        (Quantize(method="dynamic", embeddings=False), "expected tables, as it has no matmuls, .*`embeddings: false`"),
        (Quantize(method="dynamic", exclude=("word_embeddings",)), "`exclude: \\[word_embeddings\\]` leaves none"),
    ):
        with pytest.raises(CompressError, match=message):
            quantize_onnx(path, path.parent, spec)
    assert not path.with_name("model_quantized.onnx").exists()
