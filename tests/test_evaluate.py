"""Predictions are in the examples' order, whatever the chunks, and equal to those made one by one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from compress.errors import CheckFailed, CompressError
from compress.evaluate import predict_onnx
from compress.sessions.opening import open_session
from compress.tasks import Encoded


def make(lengths: list[int], seed: int = 0) -> Encoded:
    rng = np.random.default_rng(seed)
    ids = [rng.integers(5, 120, length).astype(np.int32) for length in lengths]
    types = [(np.arange(length) >= length // 2).astype(np.int8) for length in lengths]
    return Encoded(ids, types, np.zeros(len(lengths), np.int64))


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_every_example_gets_its_own_logits(family: str, tiny_onnx, monkeypatch) -> None:
    encoded = make([3, 24, 1, 9, 9, 17, 2, 24, 5, 11] * 3)
    monkeypatch.setattr("compress.evaluate.TOKENS", 60)  # many chunks
    logits = predict_onnx(tiny_onnx(family, "fast"), encoded, pad_id=1 if family == "roberta" else 0, threads=1)
    assert logits.shape == (30, 3)
    assert logits.dtype == np.float32
    session = open_session(tiny_onnx(family, "fast"), threads=1)
    for row, (ids, types) in enumerate(zip(encoded.input_ids, encoded.token_type_ids, strict=True)):
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
        feed = {value.name: feed[value.name][None].astype(np.int64) for value in session.get_inputs()}
        np.testing.assert_allclose(logits[row], np.asarray(session.run(None, feed)[0])[0], atol=1e-5)
    assert len(np.unique(logits.round(4), axis=0)) == 30  # different texts, different logits


def test_segments_reach_the_graph(tiny_onnx) -> None:
    encoded = make([12, 12, 7])
    without = Encoded(encoded.input_ids, [types * 0 for types in encoded.token_type_ids], encoded.labels)
    path = tiny_onnx("bert")
    assert np.abs(predict_onnx(path, encoded, 0) - predict_onnx(path, without, 0)).max() > 1e-3


def test_what_cannot_be_predicted_is_one_line(tiny_onnx, tmp_path: Path) -> None:
    path = tiny_onnx("bert")
    with pytest.raises(CompressError, match="at least one example"):
        predict_onnx(path, make([]), 0)
    with pytest.raises(CompressError, match="cannot run a batch of 1 x 25 tokens"):  # 24 positions
        predict_onnx(path, make([25]), 0)
    with pytest.raises(CompressError, match="found nothing"):
        predict_onnx(tmp_path / "none.onnx", make([3]), 0)


def test_a_graph_with_other_inputs_and_one_with_nan_are_refused(tiny_onnx, tmp_path: Path) -> None:
    model = onnx.load(tiny_onnx("bert"))
    bias = next(t for t in model.graph.initializer if t.name == "classifier.bias")
    bias.CopyFrom(onnx.numpy_helper.from_array(np.array([0, np.nan, 0], np.float32), bias.name))
    onnx.save(model, tmp_path / "nan.onnx")
    with pytest.raises(CheckFailed, match="found 2 of 2 examples without"):
        predict_onnx(tmp_path / "nan.onnx", make([4, 5]), 0)
    for node in model.graph.node:
        node.input[:] = ["tokens" if name == "input_ids" else name for name in node.input]
    model.graph.input[0].name = "tokens"
    onnx.save(model, tmp_path / "other.onnx")
    with pytest.raises(CompressError, match=r"found \['tokens', 'attention_mask', 'token_type_ids'\]"):
        predict_onnx(tmp_path / "other.onnx", make([4]), 0)


def test_importing_it_is_light() -> None:
    code = (
        "import sys, compress.evaluate; assert not {'torch', 'transformers', 'onnx', 'onnxruntime'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
