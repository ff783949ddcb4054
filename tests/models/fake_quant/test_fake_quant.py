"""A model computes like its int8 file: the same outputs as ONNX Runtime's, and the model is unchanged afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering
from fake_quant_toys import COUNTS_PADDING, FAMILIES, LENGTHS, SPEC, families, feed, loaded, quantizer, texts
from torch import nn

from compress.models.fake_quant.classifier import FakeQuant, fake_quantized
from compress.quantize import quantize_onnx, smoothing, weights
from compress.quantize.qat_params import Trained
from compress.quantize.ranges import Range
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize


def answers(model: Any, quant: FakeQuant, batch: dict[str, np.ndarray]) -> np.ndarray:
    with fake_quantized(model, quant), torch.no_grad():
        return model(**feed(model, batch)).logits.numpy()


COARSE = SPEC.model_copy(update={"per_channel": False, "exclude": (r"layer.*0.*out",)})
SPLIT = SPEC.model_copy(update={"alpha": 0.5})
SMOOTHED = SPEC.model_copy(update={"alpha": 0.7})  # the paper's alpha, so that every input has factors


@pytest.mark.parametrize(
    ("family", "spec", "long"),
    covering(FAMILIES, [(SPEC, 1024), (COARSE, 1024), (SMOOTHED, 1024), (SPLIT, 1024), (SPEC, 100)]),
)
def test_the_logits_are_those_of_the_int8_file(
    family: str, spec: Quantize, long: int, tiny_onnx, tiny_checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "LONG", long)
    if spec is SPLIT:  # tiny random models have no outlier channels
        monkeypatch.setattr(smoothing, "extra_channels", lambda channels: 16)
        monkeypatch.setattr(smoothing, "_SPLIT_GAIN", 10.0)
    if family == "albert" and spec.exclude:
        spec = spec.model_copy(update={"exclude": (r"ffn/MatMul_1",)})  # one of the uses of a shared weight
    model = loaded(tiny_checkpoint(family))
    quant = quantizer(model, spec, smoothed=spec in (SMOOTHED, SPLIT))
    ranges = {name: Range(*ends) for name, ends in quant.input_ranges().items()}
    factors, channel_repeats = (
        {name: value.numpy() for name, value in tensors.items()}
        for tensors in (quant.smoothing(), quant.channel_repeats())
    )
    assert bool(factors) == (spec in (SMOOTHED, SPLIT))
    assert bool(channel_repeats) == (spec is SPLIT)
    source = tiny_onnx(family, "fast")
    info = quantize_onnx(source, tmp_path, spec, trained=Trained(ranges, factors, channel_repeats))
    assert info["int8_matmuls"] == len(ranges)
    assert info["weight_only_matmuls"] == sum(use.source is None for use in quant.spec.uses)
    assert info["int8_gathers"] == len(quant.spec.tables)
    stored = [tensor.name for tensor in onnx.load(tmp_path / "model_quantized.onnx").graph.initializer]
    coded = [name.removesuffix(".weight_unit") for name in stored if name.endswith(".weight_unit")]
    assert sorted(coded) == sorted(quant.spec.long)
    assert bool(coded) == (long == 100)
    centred = [name.removesuffix(".weight_centre") for name in stored if name.endswith(".weight_centre")]
    assert sorted(coded + centred) == sorted(quant.spec.tables)
    session, batch = open_session(tmp_path / "model_quantized.onnx", threads=1), texts()
    inputs = {value.name: batch[value.name] for value in session.get_inputs()}
    int8 = np.asarray(session.run(["logits"], inputs)[0])
    with torch.no_grad():
        fp32 = model(**feed(model, batch)).logits.numpy()
    fake_int8 = answers(model, quant, batch)
    lost = np.abs(int8 - fp32).mean()
    assert lost > 1e-3
    # Both round alike; rarely a value that fp32 sums in another order falls half-way and rounds the other way.
    assert np.median(np.abs(fake_int8 - int8)) < 1e-4
    assert np.abs(fake_int8 - int8).max() < 2 * lost


def test_the_segment_of_single_texts_is_rounded_with_the_positions(tiny_checkpoint, tmp_path: Path) -> None:
    """The graph has one table for both."""
    from compress.export import export_onnx

    named: dict[str, Any] = {"task_name": "toy", "labels": ("no", "maybe", "yes"), "kind": "classification"}
    export_onnx(tiny_checkpoint("bert"), tmp_path, graph="fast", opset=20, pairs=False, **named)
    model, batch = loaded(tiny_checkpoint("bert")), texts()
    batch["token_type_ids"][:] = 0
    quant = quantizer(model, pairs=False)
    assert set(quant.spec.tables) == {f"bert.embeddings.{name}_embeddings" for name in ("word", "position")}
    ranges = {name: Range(*ends) for name, ends in quant.input_ranges().items()}
    quantize_onnx(tmp_path / "model.onnx", tmp_path, SPEC, trained=Trained(ranges))
    session = open_session(tmp_path / "model_quantized.onnx", threads=1)
    int8 = np.asarray(session.run(["logits"], {name: batch[name] for name in ("input_ids", "attention_mask")})[0])
    assert np.median(np.abs(answers(model, quant, batch) - int8)) < 1e-4


@families
def test_padding_changes_nothing(family: str, tiny_checkpoint) -> None:
    model = loaded(tiny_checkpoint(family))
    pad = model.config.pad_token_id
    quant = quantizer(model)
    whole = answers(model, quant, texts(pad))
    for row, length in enumerate(LENGTHS):
        alone = {name: values[row : row + 1, :length] for name, values in texts(pad).items()}
        assert np.abs(answers(model, quant, alone) - whole[row]).max() < 2e-2
    assert np.median(np.abs(answers(model, quant, texts(pad + 3)) - whole)) < (
        1e-6 if family not in COUNTS_PADDING else 1
    )


@families
def test_nothing_of_it_is_left(family: str, tiny_checkpoint, tmp_path: Path) -> None:
    model = loaded(tiny_checkpoint(family))
    batch = feed(model, texts())
    with torch.no_grad():
        expected = model(**batch).logits
    with pytest.raises(ZeroDivisionError), fake_quantized(model, quantizer(model)):
        assert "fake_quant.moves" in model.state_dict()
        with torch.no_grad():
            assert not torch.equal(model(**batch).logits, expected)
        raise ZeroDivisionError
    with torch.no_grad():
        assert torch.equal(model(**batch).logits, expected)
    assert not any("forward" in vars(module) or module._forward_hooks for module in model.modules())
    model.save_pretrained(tmp_path)
    plain = loaded(tiny_checkpoint(family))
    assert model.state_dict().keys() == plain.state_dict().keys() == loaded(tmp_path).state_dict().keys()


class Holder(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.layer(states)


def test_one_linear_layer_is_within_a_step_of_the_integers(tmp_path: Path) -> None:
    """At every token, against the node in the int8 file."""
    from onnx import TensorProto, helper, numpy_helper

    from compress.graphs.model_files import write_model
    from compress.models.fake_quant.spec import MatmulUse, QuantSpec
    from compress.quantize.int8_graph import to_int8_graph
    from compress.quantize.node_selection import QuantizationPlan

    torch.manual_seed(0)
    layer, states, (low, high) = nn.Linear(16, 24), torch.randn(2, 5, 16) * 2 + 0.7, (-3.0, 4.0)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="0/MatMul"), helper.make_node("Add", ["p", "b"], ["y"])]
    stored = {"w": layer.weight.detach().numpy().T.copy(), "b": layer.bias.detach().numpy()}
    shapes = {"x": [2, 5, 16], "y": [2, 5, 24]}
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    weights = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    plan = QuantizationPlan(int8=("0/MatMul",), weight_only=(), kept=(), tables=())
    span = Range(low, high)
    int8 = to_int8_graph(model, plan, {"0/MatMul": "static"}, ranges={"0/MatMul": span}, reduce_range=True)
    assert any(node.op_type == "MatMulIntegerToFloat" for node in int8.graph.node)
    write_model(int8, tmp_path / "m.onnx")
    onnx.checker.check_model(str(tmp_path / "m.onnx"))
    expected = np.asarray(open_session(tmp_path / "m.onnx", threads=1).run(["y"], {"x": states.numpy()})[0])
    quant = FakeQuant(
        QuantSpec((MatmulUse("0/MatMul", "layer", 0, "x"),), (), bits=7), {"x": (low, high)}, ranges="learned"
    )
    model = Holder(layer)
    with fake_quantized(model, quant), torch.no_grad():
        actual = model(states).numpy()
        assert np.abs(actual - expected).max() < 1e-5  # the integers' sum is exact, that of floats nearly
        assert np.abs(actual - expected).max() < float(span.parameters()[0]) * np.abs(stored["w"]).max()
    assert np.abs(model(states).detach().numpy() - expected).max() > 1e-2
