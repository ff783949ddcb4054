"""A model computes like its int8 file: the same outputs as ONNX Runtime's, and the model is unchanged afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from compress.export.fast import build_fast
from compress.models.fake_quant import FakeQuant, fake_quantized
from compress.quantize import quantize_onnx, smoothing, weights
from compress.quantize.qat_params import Trained, quant_spec_of
from compress.quantize.ranges import Range, calibrate
from compress.quantize.smoothing import Smoothing, find_factors, smooth
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
COUNTS_PADDING = ("roberta", "mpnet")  # positions depend on which tokens are padding
families = pytest.mark.parametrize("family", FAMILIES)
# 7 bits: with more, a CPU without VNNI may saturate a sum of two products, and then only its own arithmetic gives its outputs.
SPEC = Quantize(method="qat", reduce_range=True)
LENGTHS = (10, 7, 3, 10, 1, 5)


def texts(padding: int = 0) -> dict[str, np.ndarray]:
    """`padding`: the token id in the padding."""
    mask = (np.arange(10) < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids = np.random.default_rng(0).integers(5, 120, mask.shape)
    return {"input_ids": np.where(mask, ids, padding), "attention_mask": mask, "token_type_ids": (ids % 2) * mask}


def loaded(checkpoint: Path) -> Any:
    from transformers import AutoModelForSequenceClassification

    return AutoModelForSequenceClassification.from_pretrained(checkpoint).eval()


def feed(model: Any, batch: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    from compress.models.features import accepted_inputs

    return {name: torch.from_numpy(batch[name]) for name in accepted_inputs(model)}


def quantizer(
    model: Any,
    spec: Quantize = SPEC,
    ranges: Any = "learned",
    gain: float = 1.0,
    pairs: bool = True,
    smoothed: bool = False,
) -> FakeQuant:
    """Return a quantizer with calibrated ranges."""
    graph = build_fast(model, pairs=pairs)
    assert graph is not None
    form, plan = quant_spec_of(graph, spec)
    scaling = find_factors(graph, plan, [texts()], spec) if smoothed else Smoothing()
    factors, channel_repeats = scaling.factors, scaling.channel_repeats
    if smoothed:
        assert factors
        graph = smooth(graph, factors, fold=spec.per_channel)
        form, _ = quant_spec_of(graph, spec)
    sources = tuple(dict.fromkeys(use.source for use in form.uses if use.source is not None))
    spans = calibrate(graph, sources, [texts()], method="minmax", percentile=100)
    ends = {name: (span.low, span.high) for name, span in spans.items()}
    return FakeQuant(form, ends, ranges=ranges, gain=gain, factors=factors, channel_repeats=channel_repeats)


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
    ranges = {name: Range(*ends) for name, ends in quant.found().items()}
    factors, channel_repeats = (
        {name: value.numpy() for name, value in tensors.items()}
        for tensors in (quant.smoothing(), quant.channel_repeats())
    )
    assert bool(factors) == (spec in (SMOOTHED, SPLIT))
    assert bool(channel_repeats) == (spec is SPLIT)
    source = tiny_onnx(family, "fast")
    info = quantize_onnx(source, tmp_path, spec, trained=Trained(ranges, factors, channel_repeats))
    assert info["int8_matmuls"] == len(ranges)
    assert info["weight_only_matmuls"] == sum(use.source is None for use in quant.form.uses)
    assert info["int8_gathers"] == len(quant.form.tables)
    stored = [tensor.name for tensor in onnx.load(tmp_path / "model_quantized.onnx").graph.initializer]
    coded = [name.removesuffix(".weight_unit") for name in stored if name.endswith(".weight_unit")]
    assert sorted(coded) == sorted(quant.form.long)
    assert bool(coded) == (long == 100)
    centred = [name.removesuffix(".weight_centre") for name in stored if name.endswith(".weight_centre")]
    assert sorted(coded + centred) == sorted(quant.form.tables)
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
    assert set(quant.form.tables) == {f"bert.embeddings.{name}_embeddings" for name in ("word", "position")}
    ranges = {name: Range(*ends) for name, ends in quant.found().items()}
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
def test_moving_averages_see_real_tokens_alone(family: str, tiny_checkpoint) -> None:
    """Padding moves no range, and one forward pass moves a range by a tenth of the way."""
    model, starts = loaded(tiny_checkpoint(family)), []
    pad = model.config.pad_token_id
    for padding in (pad, pad if family in COUNTS_PADDING else pad + 3):
        quant = quantizer(model, ranges="moving_average")
        assert not list(quant.parameters())
        exact = quant.start.clone()
        quant.start.mul_(2)
        with fake_quantized(model, quant), torch.no_grad():
            quant.eval()
            model(**feed(model, texts(padding)))
            assert torch.equal(quant.start, 2 * exact)
            quant.train()
            model(**feed(model, texts(padding)))
        starts.append(quant.start)
        moved = (quant.start / exact)[exact != 0]
        assert (moved - 1.9).abs().max() < 0.03  # earlier layers are quantized coarsely, so this is approximate
    torch.testing.assert_close(starts[0], starts[1], rtol=1e-4, atol=1e-4)


class ReadOuts(TorchDispatchMode):
    """Records operators whose output shape depends on the data, which make a GPU synchronize."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        picks = func is torch.ops.aten.index.Tensor and any(i is not None and i.dtype == torch.bool for i in args[1])
        if picks or func is torch.ops.aten.nonzero.default:
            self.operators.append(str(func))
        return func(*args, **(kwargs or {}))


def test_ranges_follow_without_a_wait_for_the_device(tiny_checkpoint) -> None:
    model = loaded(tiny_checkpoint("bert"))
    quant, batch = quantizer(model, ranges="moving_average"), feed(model, texts())
    before = quant.start.clone()
    with fake_quantized(model.train(), quant), ReadOuts() as read:
        model(**batch)
        assert not read.operators
        _ = batch["input_ids"][batch["attention_mask"].bool()]
        assert read.operators
    assert not torch.equal(quant.start, before)


@families
def test_training_reaches_every_weight_and_range(family: str, tiny_checkpoint) -> None:
    model = loaded(tiny_checkpoint(family))
    plain = {name for name, weight in model.named_parameters() if weight.requires_grad}
    quant = quantizer(model, gain=50.0)
    before = quant.found()
    with fake_quantized(model, quant):
        named = dict(model.named_parameters())
        assert set(named) - plain == {"fake_quant.moves"}
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)
        model(**feed(model, texts())).logits.square().sum().backward()
        assert quant.moves is not None
        assert quant.moves.grad is not None
        unused = {"roberta.pooler", "electra.pooler"}
        reached = {name for name, weight in named.items() if weight.grad is not None and weight.grad.any()}
        # The bias of keys is the same for all tokens, so attention does not depend on it, in any layer.
        missing = {
            name
            for name in plain - reached
            if not any(word in name for word in ("key.bias", "k_lin.bias", "attn.k.bias"))
        }
        assert {name for name in missing if not name.startswith(tuple(unused))} == set()
        optimizer.step()
    widths = {name: before[name][1] - before[name][0] for name in before}
    moves = [
        abs(end - old) / widths[name]
        for name, ends in quant.found().items()
        for end, old in zip(ends, before[name], strict=True)
    ]
    assert max(moves) == pytest.approx(0.05, rel=0.02)  # lr × gain, in units of the range: Adam's first step
    assert np.mean(np.array(moves) > 0.02) > 0.9


def test_what_reads_one_tensor_has_one_range_and_a_shared_block_one_for_each_use(tiny_checkpoint) -> None:
    for family, stem, names in (
        ("bert", "bert.encoder.layer.0.attention.self.", ("query", "key", "value")),
        ("albert", "albert.encoder.albert_layer_groups.0.albert_layers.0.attention.", ("query", "key", "value")),
    ):
        model = loaded(tiny_checkpoint(family))
        ranges = quantizer(model).found()
        assert len({ranges[f"{stem}{name}/MatMul"] for name in names}) == 1
    block = "albert.encoder.albert_layer_groups.0.albert_layers.0"
    assert ranges[f"{block}.ffn/MatMul"] != ranges[f"{block}.ffn/MatMul_1"]
    assert f"{block}.attention.query/MatMul_1" in ranges
    assert f"{block}.attention.key/MatMul_1" not in ranges  # absorbed: only its weight is int8


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
    from compress.models.quant_spec import MatmulUse, QuantSpec
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
