"""A model that amplifies rounding is exported; a wrong graph, even of such a model, is not."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import slow
from onnx import numpy_helper
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from compress.errors import CheckFailed
from compress.export import export_onnx, parity
from compress.export.rounding import exact_answers
from compress.export.tracing import example, load

TASK = {"graph": "fast", "opset": 20, "task_name": "toy", "labels": ("no", "maybe", "yes"), "kind": "classification"}
UNIT = 2.0**-24


class Line(nn.Module):
    """One sum of `terms` products; `gain` imitates the cancellation in a difference of two such sums."""

    def __init__(self, terms: int, gain: float) -> None:
        super().__init__()
        self.weight, self.gain = nn.Parameter(torch.ones(1, terms)), gain

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.gain * input_ids.to(self.weight.dtype) @ self.weight.T)


@pytest.mark.parametrize("terms", [16, 4096])
@pytest.mark.parametrize("gain", [1.0, 1e3])
def test_a_sum_moves_by_what_rounding_does_to_it(terms: int, gain: float) -> None:
    """With weights and inputs of 1 the sum is `terms`, with standard deviation u √n √n gain in each draw."""
    ones = torch.ones(1, terms, dtype=torch.int64)
    exact, moved = exact_answers(Line(terms, gain), {"input_ids": ones, "attention_mask": ones})
    assert exact.dtype == np.float64
    assert exact.item() == terms * gain
    assert 0.3 < moved.item() / (UNIT * terms * gain) < 4  # the largest of four draws


def test_the_model_itself_is_left_as_it_is(tiny_checkpoint) -> None:
    traced = load(tiny_checkpoint("bert"), "classification")
    before = {name: value.clone() for name, value in traced.model.state_dict().items()}
    exact_answers(traced.model, example(traced, 2, 5))
    for name, value in traced.model.state_dict().items():
        assert value.dtype == before[name].dtype
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("family", ["bert", "mpnet", *slow("albert", "roberta", "electra", "distilbert", "ernie")])
def test_float64_is_nearer_than_rounding_moves(family: str, tiny_checkpoint) -> None:
    traced = load(tiny_checkpoint(family), "classification")
    inputs = example(traced, 3, 19)
    exact, moved = exact_answers(traced.model, inputs)
    with torch.inference_mode():
        fp32 = traced.model(**inputs).logits.numpy()
    assert 0 < np.abs(fp32 - exact).max() <= moved.max() < 1e-5


@pytest.fixture(scope="module")
def amplifying(tmp_path_factory) -> Path:
    """Return a checkpoint whose attention is almost one-hot: a small change selects another token."""
    torch.manual_seed(7)
    sizes: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 6,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "num_labels": 3,
    }
    model = BertForSequenceClassification(BertConfig(vocab_size=99, max_position_embeddings=24, **sizes))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.add_(torch.randn_like(weight) * 0.1)
            if "query" in name or "key" in name:
                weight.mul_(20)
    folder = tmp_path_factory.mktemp("amplifying")
    model.save_pretrained(folder)
    return folder


def test_a_model_that_amplifies_rounding_is_exported_and_this_is_on_record(amplifying: Path, tmp_path: Path) -> None:
    info = export_onnx(amplifying, tmp_path, **TASK)
    errors, moved = info["parity_max_abs_error"], info["moved_by_rounding"]
    assert "8x24" in moved
    for shape, error in errors.items():  # which shapes it takes for this depends on the CPU
        assert (1e-5 < error <= moved[shape] < 1e-3) if shape in moved else error <= 1e-5, shape


def test_a_wrong_graph_of_such_a_model_is_refused(amplifying: Path, tmp_path: Path) -> None:
    export_onnx(amplifying, tmp_path, **TASK)
    traced = load(amplifying, "classification")
    logits = parity.torch_logits(traced)
    parity.check_parity(traced, tmp_path / "model.onnx", logits, 1e-5)
    model = onnx.load(tmp_path / "model.onnx")
    bias = next(each for each in model.graph.initializer if each.name == "classifier.bias")
    bias.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(bias) + np.float32(3e-5), bias.name))
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(CheckFailed, match="logits differ from torch's beyond 1e-05"):
        parity.check_parity(traced, tmp_path / "model.onnx", logits, 1e-5)


def test_an_error_of_a_wrong_mask_is_not_looked_into(amplifying: Path, tmp_path: Path, monkeypatch) -> None:
    export_onnx(amplifying, tmp_path, **TASK)
    traced = load(amplifying, "classification")
    logits = {shape: values + np.float32(0.1) for shape, values in parity.torch_logits(traced).items()}
    monkeypatch.setattr(parity, "exact_answers", lambda *_: pytest.fail("called"))
    with pytest.raises(CheckFailed, match="the graph is not kept"):
        parity.check_parity(traced, tmp_path / "model.onnx", logits, 1e-5)


def test_each_example_beyond_the_tolerance_must_be_as_rounding_has_it(tiny_checkpoint, tiny_onnx, monkeypatch) -> None:
    traced = load(tiny_checkpoint("bert"), "classification")
    right = parity.torch_logits(traced)[3, 19]
    off = np.float32(1e-3) * max(1.0, float(np.abs(right).max()))
    exact = (right + off * np.array([[0], [1], [0]], np.float32))[:2]
    monkeypatch.setattr(parity, "exact_answers", lambda model, inputs: (exact, np.zeros_like(exact)))
    with pytest.raises(CheckFailed, match="3x19"):
        parity.check_parity(traced, tiny_onnx("bert"), {(3, 19): right + off * np.array([[1], [1], [0]], np.float32)})


def test_a_graph_with_another_number_of_outputs_is_refused(tiny_checkpoint, tiny_onnx) -> None:
    traced = load(tiny_checkpoint("bert"), "classification")
    right = parity.torch_logits(traced)[1, 7]
    with pytest.raises(CheckFailed, match="1x7: inf"):
        parity.check_parity(traced, tiny_onnx("bert"), {(1, 7): right[:, :2]})


def test_of_tokens_every_real_one_is_compared_and_no_padding() -> None:
    differences = np.zeros((2, 4, 3), np.float32)
    differences[0, 2, 1], differences[1, 3, 0] = -0.5, 9.0  # the second is in padding
    assert parity._by_example(differences, np.array([[1, 1, 1, 1], [1, 1, 1, 0]])).tolist() == [0.5, 0.0]
