"""SmoothQuant's factors against the paper's formula; exact graphs; what smoothing rescues and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from exact_sums import SEVEN_BITS
from onnx import ModelProto, TensorProto, helper, numpy_helper
from small_graphs import Feeds, every_row, logits, model_of

from compress.quantize import FILES, quantize_onnx, smoothing
from compress.quantize.node_selection import QuantizationPlan, select_nodes
from compress.quantize.noise import signal_to_noise
from compress.quantize.params import compute_params
from compress.quantize.smoothing import Smoothing, find_factors, smooth
from compress.spec.quantization import Quantize

generator = np.random.default_rng(1)
WIDTH, OUT = 16, 24
WEIGHT = generator.normal(size=(WIDTH, OUT)).astype(np.float32)
OTHER = (generator.normal(size=(WIDTH, OUT)) * 0.3).astype(np.float32)
TABLE = generator.normal(size=(60, WIDTH)).astype(np.float32)
TABLE[:, 5] *= 80  # the planted outlier channel, with small weights, as in BERT
WEIGHT[5] *= 0.02
OTHER[5] *= 0.02
PLAN = QuantizationPlan(int8=("first/MatMul", "second/MatMul"), weight_only=(), kept=(), tables=())


def model() -> ModelProto:
    """Return two matmuls that read the rows of a table, like query and key, and a third reader of the rows."""
    nodes = [
        helper.make_node("Gather", ["t", "input_ids"], ["x"], name="rows"),
        helper.make_node("MatMul", ["x", "w"], ["p"], name="first/MatMul"),
        helper.make_node("MatMul", ["x", "v"], ["q"], name="second/MatMul"),
        helper.make_node("Add", ["p", "b"], ["pb"], name="first/Add"),
        helper.make_node("Add", ["q", "b"], ["qb"], name="second/Add"),
        helper.make_node("Tanh", ["x"], ["s"], name="residual"),
        helper.make_node("ReduceSum", ["s", "axis"], ["m"], name="total", keepdims=1),
        helper.make_node("Sum", ["pb", "qb", "m"], ["logits"], name="sum"),
    ]
    stored = {"t": TABLE, "w": WEIGHT, "v": OTHER, "b": np.ones(OUT, np.float32), "axis": np.array([2])}
    return model_of(nodes, stored, OUT)


def feeds() -> Feeds:
    return every_row(60, texts=6)


def run(onnx_model: ModelProto, folder: Path) -> np.ndarray:
    return logits(onnx_model, folder, feeds())


def test_factors_are_the_papers() -> None:
    chosen = find_factors(model(), PLAN, feeds(), Quantize(alpha=0.7))
    factors = chosen.factors
    states, weights = np.abs(TABLE).max(0), np.abs(np.concatenate([WEIGHT, OTHER], 1)).max(1)
    weights = np.maximum(weights, 0.1 * np.median(weights))  # the outlier channel's weights are raised to this
    expected = states**0.7 / weights**0.3
    vector = factors["first/MatMul"]
    assert vector / vector[0] == pytest.approx(expected / expected[0], rel=2**-10)
    assert np.log(vector).mean() == pytest.approx(0, abs=2**-10)
    assert (1 / vector == (1 / vector).astype(np.float16)).all()  # as stored in the file
    assert chosen.minor_side_weights == {}  # both sides of the rows are alike
    assert (factors["second/MatMul"] == vector).all()  # they share one input, so one division
    assert chosen.alphas == {"first/MatMul": 0.7, "second/MatMul": 0.7}
    assert chosen.channel_repeats == {}  # a table's rows come from no matmul


def test_channels_that_were_silent_on_the_sample_are_not_wiped_out() -> None:
    """Most channels are silent, as behind a ReLU; their factors follow from those that are not."""
    table = TABLE.copy()
    table[:, 7:] = 0
    nodes = [
        helper.make_node("Gather", ["t", "input_ids"], ["x"], name="rows"),
        helper.make_node("MatMul", ["x", "w"], ["p"], name="first/MatMul"),
        helper.make_node("Add", ["p", "b"], ["logits"], name="first/Add"),
    ]
    silent_model = model_of(nodes, {"t": table, "w": WEIGHT, "b": np.ones(OUT, np.float32)}, OUT)
    plan = QuantizationPlan(int8=("first/MatMul",), weight_only=(), kept=(), tables=())
    factors = find_factors(silent_model, plan, feeds(), Quantize(alpha=0.5)).factors["first/MatMul"]
    assert (table != 0).any(axis=0).mean() < 0.5
    assert factors[7:].min() > 0.05 * np.median(factors[:7])


def test_outputs_are_the_same_in_fp32_and_other_readers_are_left_alone(tmp_path: Path) -> None:
    factors = find_factors(model(), PLAN, feeds(), Quantize(alpha=0.5)).factors
    smoothed = smooth(model(), factors, fold=True)
    assert run(smoothed, tmp_path) == pytest.approx(run(model(), tmp_path), rel=1e-4, abs=1e-3)
    by_name = {node.name: node for node in smoothed.graph.node}
    assert by_name["residual"].input[0] == "x"
    assert sum(node.op_type == "Mul" for node in smoothed.graph.node) == 1


def error(folder: Path, **spec: object) -> float:
    how = Quantize(embeddings=False, reduce_range=True, calibration="minmax", **spec)  # type: ignore[arg-type]
    int8_model = compute_params(model(), PLAN, "static", how, feeds(), smoothed=how.method == "smoothquant").applied(
        model(), PLAN, how
    )
    exact = run(model(), folder)
    return float(np.abs(run(int8_model, folder) - exact).mean() / np.abs(exact).mean())


def test_an_outlier_channel_that_breaks_static_int8_is_rescued(tmp_path: Path) -> None:
    broken, rescued = error(tmp_path, method="static"), error(tmp_path, method="smoothquant")
    assert broken > 0.1
    assert rescued < broken / 4
    # What remains is close to the error of int8 without any outlier.
    assert rescued < 0.03


def test_the_search_takes_the_best_alpha_and_none_where_none_helps(tmp_path: Path) -> None:
    alphas = find_factors(model(), PLAN, feeds(), Quantize(alpha=None)).alphas
    chosen = alphas["first/MatMul"]
    errors = {alpha: error(tmp_path, method="smoothquant", alpha=alpha) for alpha in (0.4, 0.7, 1.0)}
    assert error(tmp_path, method="smoothquant", alpha=chosen) <= min(errors.values()) * 1.1
    even = model()
    table = next(tensor for tensor in even.graph.initializer if tensor.name == "t")
    bits = (generator.random((60, WIDTH)) < 0.5).astype(np.float32)
    table.CopyFrom(numpy_helper.from_array(bits, "t"))  # int8 represents these values exactly
    assert find_factors(even, PLAN, feeds(), Quantize(alpha=None)) == Smoothing()


def one_sided(down: float) -> ModelProto:
    """Return a model whose rows are like GELU's output: channels reach up to different heights, and all alike a little down."""
    onnx_model, draws = model(), np.random.default_rng(7)
    up = np.abs(draws.normal(size=(60, WIDTH))) * 10 ** np.linspace(-1, 1, WIDTH)
    rows = np.where(draws.random((60, WIDTH)) < 0.1, up, -0.17 * draws.random((60, WIDTH))) * np.sign(down)
    table = next(tensor for tensor in onnx_model.graph.initializer if tensor.name == "t")
    table.CopyFrom(numpy_helper.from_array(rows.astype(np.float32), "t"))
    return onnx_model


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_the_minor_side_of_an_input_takes_few_levels(
    direction: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = one_sided(direction)
    exact, shares, errors = run(source, tmp_path), [], []
    for minor_side_weights in (smoothing.MINOR_SIDE_WEIGHTS, (1.0,)):
        monkeypatch.setattr(smoothing, "MINOR_SIDE_WEIGHTS", minor_side_weights)
        how = Quantize(method="smoothquant", embeddings=False, calibration="minmax", alpha=1.0, reduce_range=SEVEN_BITS)
        params = compute_params(source, PLAN, "static", how, feeds(), smoothed=how.method == "smoothquant")
        assert bool(params.minor_side_weights) == (len(minor_side_weights) > 1)
        assert params.summary().get("minor_side_weights", {}) == params.minor_side_weights
        span = params.ranges["first/MatMul"]
        shares.append(min(-span.low, span.high) / max(-span.low, span.high))
        errors.append(np.square(run(params.applied(source, PLAN, how), tmp_path) - exact).mean())
    assert shares[0] < 0.15 < 0.9 < shares[1]
    assert errors[0] < 0.4 * errors[1]  # a step nearly half as wide, so at best a quarter of the squared error


def test_alpha_is_searched_again_where_one_side_is_the_minor(monkeypatch: pytest.MonkeyPatch) -> None:
    source = one_sided(1.0)
    uneven = find_factors(source, PLAN, feeds(), Quantize())
    monkeypatch.setattr(smoothing, "MINOR_SIDE_WEIGHTS", (1.0,))
    plain = find_factors(source, PLAN, feeds(), Quantize())
    assert uneven.minor_side_weights
    assert uneven.alphas["first/MatMul"] > plain.alphas["first/MatMul"]


def test_the_file_has_its_factors_in_half_precision_and_loses_nothing(tmp_path: Path) -> None:
    factors = find_factors(model(), PLAN, feeds(), Quantize(alpha=0.5)).factors
    whole = smooth(model(), factors, fold=True)
    halved = ModelProto.FromString(whole.SerializeToString())
    smoothing.halve_factor_precision(halved)
    assert run(halved, tmp_path) == pytest.approx(run(whole, tmp_path), rel=1e-5, abs=1e-5)
    half = [tensor for tensor in halved.graph.initializer if tensor.data_type == TensorProto.FLOAT16]
    assert [list(tensor.dims) for tensor in half] == [[WIDTH]]


def padded() -> Feeds:
    ids = np.random.default_rng(0).integers(5, 100, (4, 9))
    mask = (np.arange(9) < np.array([[9], [9], [5], [3]])).astype(np.int64)
    return [{"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}]


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert"])
def test_a_smoothed_model_is_whole_and_no_larger(family: str, tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    """Shared weights stay shared, and the unpadded form uses the same ones."""
    source = tiny_onnx(family, "fast")
    batches = padded()
    sizes = {}
    for method in ("static", "smoothquant"):
        spec = Quantize(method=method, alpha=0.5 if method == "smoothquant" else None)
        info = quantize_onnx(source, tmp_path / method, spec, feeds=batches)
        int8_model = onnx.load(tmp_path / method / FILES["static"])
        sizes[method] = sum(
            len(tensor.raw_data) for tensor in int8_model.graph.initializer if tensor.data_type == TensorProto.INT8
        )
        assert (tmp_path / method / "model_quantized_unpadded.onnx").is_file()
    assert info["alphas"]
    assert set(info["alphas"].values()) == {0.5}
    assert sizes["smoothquant"] == sizes["static"]
    names = {tensor.name for tensor in int8_model.graph.initializer}
    kinds = {
        tensor.name: tensor.data_type for tensor in int8_model.graph.initializer if tensor.name.endswith("/inverse")
    }
    factors = set(kinds)
    assert set(kinds.values()) == {TensorProto.FLOAT16}
    assert len(factors) <= len(
        [name for name in names if name.endswith("_smooth_quantized")]
    )  # one for all repeats of a block


@pytest.mark.parametrize("family", ["bert", "distilbert", "albert"])
def test_a_whole_model_with_copies_and_its_unpadded_form(
    family: str, tiny_onnx: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smoothing, "extra_channels", lambda channels: 16)
    monkeypatch.setattr(smoothing, "_SPLIT_GAIN", 10.0)  # tiny random models have no outlier channels
    source = tiny_onnx(family, "fast")
    batches = padded()
    spec = Quantize(alpha=0.5, portable=True, reduce_range=SEVEN_BITS)
    info = quantize_onnx(source, tmp_path, spec, feeds=batches)  # compares the unpadded form
    assert set(info["channels_added"].values()) == {16}
    layers = sum(node.op_type == "Gelu" for node in onnx.load(source).graph.node)
    assert len(info["channels_added"]) == layers
    int8_model = onnx.load(tmp_path / FILES["static"])
    wide = [tensor.name for tensor in int8_model.graph.initializer if tensor.name.endswith("_split_quantized")]
    assert len(wide) == 2 * (1 if family == "albert" else layers)
    decibels = signal_to_noise(source, tmp_path / FILES["static"], batches)
    assert all(value is None or value > 20 for value in decibels.values())
    portable = quantize_onnx(source, tmp_path, spec, int8_format="qdq", feeds=batches)
    assert portable["int8_matmuls"] == info["int8_matmuls"]


def test_alberts_last_keys_and_values_keep_the_shared_weights_as_they_are(tiny_onnx: Callable[..., Path]) -> None:
    source = onnx.load(tiny_onnx("albert", "fast"))
    plan = select_nodes(source, (), embeddings=True, source=Path("m"))
    ids = np.arange(5, 45).reshape(4, 10)
    batches = [{"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}]
    factors = find_factors(source, plan, batches, Quantize(alpha=0.5)).factors
    assert factors
    assert not [name for name in factors if ".key/" in name or ".value/" in name]


def test_corrections_take_the_mean_error_away(tmp_path: Path) -> None:
    exact = run(model(), tmp_path)
    means = {}
    for corrected in (False, True):
        how = Quantize(method="static", embeddings=False, reduce_range=True, percentile=99.5, bias_correction=corrected)
        int8_model = compute_params(
            model(), PLAN, "static", how, feeds(), smoothed=how.method == "smoothquant"
        ).applied(model(), PLAN, how)
        means[corrected] = np.abs((run(int8_model, tmp_path) - exact).mean((0, 1))).max()
    assert means[False] > 0.05
    assert means[True] < means[False] / 50


def test_a_product_in_the_dynamic_format_is_not_corrected_for_a_range_that_it_has_not() -> None:
    how = Quantize(method="static", reduce_range=True, percentile=99.5, bias_correction=True)
    params = compute_params(model(), PLAN, "static", how, feeds(), smoothed=how.method == "smoothquant")
    dynamic = replace(params, int8_formats=dict.fromkeys(PLAN.int8, "dynamic"))
    assert params.corrections
    plain = replace(dynamic, corrections={})
    assert dynamic.applied(model(), PLAN, how) == plain.applied(model(), PLAN, how)
    assert params.applied(model(), PLAN, how) != replace(params, corrections={}).applied(model(), PLAN, how)


def test_inputs_that_share_a_weight_have_factors_for_the_peaks_of_both() -> None:
    draws = np.random.default_rng(1)
    weight, half = (draws.normal(size=shape).astype(np.float32) for shape in ((16, 24), (30, 16)))
    table = np.concatenate([half, -half])  # both sides of an input are alike
    other = table.copy()
    table[:, 5] *= 80
    other[:, 9] *= 80
    nodes = [
        helper.make_node("Gather", ["t", "input_ids"], ["x"], name="rows"),
        helper.make_node("Gather", ["u", "input_ids"], ["y"], name="others"),
        helper.make_node("MatMul", ["x", "w"], ["p"], name="first/MatMul"),
        helper.make_node("MatMul", ["y", "w"], ["q"], name="second/MatMul"),
        helper.make_node("Sum", ["p", "q"], ["logits"], name="sum"),
    ]
    source = model_of(nodes, {"t": table, "u": other, "w": weight}, 24)
    factors = find_factors(source, PLAN, feeds(), Quantize(alpha=0.7)).factors
    expected = np.maximum(np.abs(table).max(0), np.abs(other).max(0)) ** 0.7 / np.abs(weight).max(1) ** 0.3
    assert (factors["first/MatMul"] == factors["second/MatMul"]).all()
    assert factors["first/MatMul"] / factors["first/MatMul"][0] == pytest.approx(expected / expected[0], rel=2**-10)
