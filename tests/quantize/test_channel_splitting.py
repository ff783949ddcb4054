"""Channel splitting: the output stays the same, int8 becomes more precise, and where splitting is impossible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from exact_sums import SEVEN_BITS
from onnx import ModelProto, NodeProto, helper, numpy_helper
from small_graphs import Feeds, every_row, logits, logits_of, model_of

from compress.graphs.model_files import write_model
from compress.quantize import smoothing
from compress.quantize.channel_splitting import (
    count_repeats,
    extra_channels,
    source_channels,
    split_before,
    split_channels,
    split_rows,
    splittable,
)
from compress.quantize.evaluator import Evaluator
from compress.quantize.mixed_precision import search
from compress.quantize.node_selection import QuantizationPlan, without_matmuls
from compress.quantize.params import compute_params
from compress.quantize.weights import to_int8
from compress.spec.quantization import Quantize
from compress.tasks import TASK_KINDS

WIDTH, HIDDEN, OUT = 16, 512, 24
FIRST, SECOND = "first/MatMul", "second/MatMul"
PLAN = QuantizationPlan(int8=(FIRST, SECOND), weight_only=(), kept=(), tables=())
INT8: dict = {"axis": 1, "bits": 8}


def node(kind: str, inputs: Sequence[str], output: str, name: str = "") -> NodeProto:
    return helper.make_node(kind, list(inputs), [output], name=name or f"{output}/{kind}")


def model(*more: NodeProto, repeats: int = 1, outlier: float = 60.0) -> ModelProto:
    """Return `repeats` feed-forward layers that share one pair of weights, with neuron 5 scaled by `outlier`; `more` nodes are
    added."""
    generator = np.random.default_rng(2)
    stored = {
        "t": generator.normal(size=(200, WIDTH)),
        "w": generator.normal(size=(WIDTH, HIDDEN)) / 4,
        "b": generator.normal(size=HIDDEN) / 10,
        "v": generator.normal(size=(HIDDEN, OUT)) / 8,
        "c": np.ones(OUT),
        "turn": generator.normal(size=(OUT, WIDTH)) / 40,
        "half": np.array(0.5),
        "root": np.array(2**-0.5),
        "one": np.array(1.0),
    }
    stored["w"][:, 5] *= outlier
    nodes = [node("Gather", ["t", "input_ids"], "x0", "rows")]
    for number in range(repeats):
        end, name = str(number), "" if number == 0 else f"_{number}"
        nodes += [
            node("MatMul", [f"x{end}", "w"], f"p{end}", FIRST + name),
            node("Add", [f"p{end}", "b"], f"a{end}", f"first/Add{name}"),
            # GELU as separate operators, as an exporter may leave it, which reads one tensor twice.
            node("Mul", [f"a{end}", "root"], f"e{end}"),
            node("Erf", [f"e{end}"], f"f{end}"),
            node("Add", [f"f{end}", "one"], f"g{end}"),
            node("Mul", [f"a{end}", f"g{end}"], f"h{end}"),
            node("Mul", [f"h{end}", "half"], f"s{end}"),
            node("MatMul", [f"s{end}", "v"], f"q{end}", SECOND + name),
            node("Add", [f"q{end}", "c"], "logits" if number == repeats - 1 else f"y{end}", f"second/Add{name}"),
        ]
        if number < repeats - 1:
            nodes.append(node("MatMul", [f"y{end}", "turn"], f"x{number + 1}", f"turn/MatMul{name}"))
    return model_of([*nodes, *more], {name: value.astype(np.float32) for name, value in stored.items()}, OUT)


def feeds() -> Feeds:
    return every_row(200, texts=10)


def run(onnx_model: ModelProto, folder: Path) -> np.ndarray:
    return logits(onnx_model, folder, feeds())


def stored(onnx_model: ModelProto, name: str) -> np.ndarray:
    return numpy_helper.to_array(next(tensor for tensor in onnx_model.graph.initializer if tensor.name == name))


def channel_repeats(**counts: int) -> np.ndarray:
    """Return how often each of `HIDDEN` channels occurs; n5=3: channel 5 three times."""
    repeats = np.ones(HIDDEN, np.int64)
    for name, count in counts.items():
        repeats[int(name[1:])] = count
    return repeats


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("bits", [8, 7])
def test_the_parts_of_a_row_sum_up_to_it_and_round_as_one(per_channel: bool, bits: int) -> None:
    generator = np.random.default_rng(3)
    weight = generator.normal(size=(40, 12)).astype(np.float32)
    weight[7] *= 30
    weight[11] *= 3
    counts = np.ones(40, np.int64)
    counts[7], counts[11] = 12, 2
    axis = 1 if per_channel else None
    parts = split_rows(weight, counts, axis=axis, bits=bits)
    order = source_channels(counts)
    assert (order[:40] == np.arange(40)).all()
    assert sorted(order[40:]) == [7] * 11 + [11]
    sums = np.zeros_like(weight, dtype=np.float64)
    np.add.at(sums, order, parts.astype(np.float64))
    assert sums == pytest.approx(weight, rel=1e-6, abs=1e-6)
    levels, scale = to_int8(parts, axis, bits=bits)
    rounded = np.zeros_like(weight, dtype=np.float64)
    np.add.at(rounded, order, levels * scale)
    assert (np.abs(rounded - weight) <= scale / 2 * 1.01).all()
    whole = to_int8(weight, axis, bits=bits)[1]
    assert np.mean(scale) < np.mean(whole) / 3  # the purpose of splitting


def test_copies_go_where_they_lower_the_scales() -> None:
    weight = np.full((6, 4), 0.1)
    weight[2] = 0.8
    weight[4, 0] = 0.9  # in one column only
    assert list(count_repeats(weight, 0)) == [1] * 6
    assert list(count_repeats(weight, 1)) == [1, 1, 2, 1, 1, 1]
    repeats = count_repeats(weight, 9)
    assert repeats.sum() == 15
    best = max(
        (tuple(np.bincount(pick, minlength=6) + 1) for pick in np.ndindex(*[6] * 3)),
        key=lambda counts: -((weight / np.array(counts)[:, None]).max(0) ** 2).sum(),
    )
    greedy, exhaustive = (((weight / np.array(c)[:, None]).max(0) ** 2).sum() for c in (count_repeats(weight, 3), best))
    assert greedy == pytest.approx(exhaustive, rel=0.05)


def test_widths_stay_a_multiple_of_sixteen() -> None:
    assert {size: extra_channels(size) for size in (64, 128, 512, 1200, 1536, 3072)} == {
        64: 0,
        128: 0,
        512: 16,
        1200: 16,
        1536: 16,
        3072: 32,
    }


def test_outputs_are_the_same_in_fp32_and_the_old_channels_come_first(tmp_path: Path) -> None:
    counts = channel_repeats(n5=7, n9=2)
    split_model = split_channels(model(), {SECOND: counts}, **INT8)
    assert run(split_model, tmp_path) == pytest.approx(run(model(), tmp_path), rel=1e-5, abs=2e-5)
    wide = stored(split_model, "w_split")
    assert wide.shape == (WIDTH, HIDDEN + 7)
    assert (wide[:, :HIDDEN] == stored(model(), "w")).all()
    assert (wide[:, HIDDEN:-1] == wide[:, [5]]).all()
    assert not {"w", "v", "b"} & {tensor.name for tensor in split_model.graph.initializer}
    assert split_before(model(), {SECOND: counts}).keys() == {FIRST}


def test_repeats_of_a_shared_layer_have_their_weights_once(tmp_path: Path) -> None:
    source = model(repeats=3)
    names = [SECOND, f"{SECOND}_1", f"{SECOND}_2"]
    plan = replace(PLAN, int8=tuple(node.name for node in source.graph.node if node.op_type == "MatMul"))
    assert splittable(source, plan) == {"v"}
    split_model = split_channels(source, dict.fromkeys(names, channel_repeats(n5=4)), **INT8)
    assert len(split_model.graph.initializer) == len(source.graph.initializer)
    assert run(split_model, tmp_path) == pytest.approx(run(source, tmp_path), rel=1e-4, abs=1e-4)
    # One repeat stays fp32: the original weights are kept beside the split ones, and the weight is not splittable.
    assert splittable(source, without_matmuls(plan, names[:1])) == set()
    part = split_channels(source, dict.fromkeys(names[1:], channel_repeats(n5=4)), **INT8)
    assert run(part, tmp_path) == pytest.approx(run(source, tmp_path), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(
    "reader",
    [node("Tanh", ["s0"], "z"), node("ReduceSum", ["p0"], "z"), node("MatMul", ["x0", "w"], "z", "third/MatMul")],
    ids=["what it reads", "what the first gives", "the first's weight"],
)
def test_nothing_is_split_that_is_read_elsewhere(reader: NodeProto) -> None:
    assert splittable(model(), PLAN) == {"v"}
    assert splittable(model(reader), PLAN) == set()


def test_a_norm_before_is_no_channel_by_channel_way() -> None:
    source = model()
    gelu = next(node for node in source.graph.node if node.output[0] == "s0")
    gelu.op_type = "Softmax"
    del gelu.input[1:]
    assert splittable(source, PLAN) == set()
    assert splittable(model(), PLAN) == {"v"}
    with pytest.raises(RuntimeError, match="second/MatMul: its input"):
        split_channels(source, {SECOND: channel_repeats(n5=2)}, **INT8)


def error(folder: Path, source: ModelProto, how: Quantize) -> float:
    params = compute_params(source, PLAN, "static", how, feeds(), smoothed=True)
    assert bool(params.channel_repeats) == how.outlier_splitting
    exact = run(source, folder)
    return float(np.abs(run(params.applied(source, PLAN, how), folder) - exact).mean() / np.abs(exact).mean())


def test_a_neuron_that_is_louder_than_all_others_no_longer_coarsens_their_weights(tmp_path: Path) -> None:
    how = Quantize(embeddings=False, calibration="minmax", alpha=0.9, reduce_range=SEVEN_BITS)
    whole, parts = (
        error(tmp_path, model(), how.model_copy(update={"outlier_splitting": split})) for split in (False, True)
    )
    assert parts < 0.7 * whole


def test_none_is_split_where_none_sticks_out() -> None:
    params = compute_params(model(outlier=1), PLAN, "static", Quantize(), feeds(), smoothed=True)
    assert params.channel_repeats == {}
    assert "channels_added" not in params.summary()
    outlier = compute_params(model(), PLAN, "static", Quantize(), feeds(), smoothed=True)
    assert outlier.summary()["channels_added"] == {SECOND: 16}


def test_a_mix_that_gives_the_product_back_has_no_copies_and_corrections_that_fit(tmp_path: Path) -> None:
    how = Quantize(embeddings=False, bias_correction=True, percentile=99.5, reduce_range=SEVEN_BITS)
    params = compute_params(model(), PLAN, "static", how, feeds(), smoothed=True)
    assert len(params.corrections[FIRST]) == HIDDEN
    exact = run(model(), tmp_path)
    errors = []
    for fp32_fallbacks in ([], [SECOND], [FIRST]):
        plan = without_matmuls(PLAN, fp32_fallbacks)
        int8_model = params.applied(model(), plan, how)
        errors.append(np.abs(run(int8_model, tmp_path) - exact).mean() / np.abs(exact).mean())
        (first,) = (node for node in int8_model.graph.node if node.name in (FIRST, f"{FIRST}_quant"))
        (width,) = (tensor.dims[1] for tensor in int8_model.graph.initializer if tensor.name == first.input[1])
        assert width == (HIDDEN if fp32_fallbacks == [SECOND] else HIDDEN + 16)
    assert max(errors) < 0.05


def test_layers_that_share_a_bias_alone_are_split_each_in_its_way(tmp_path: Path) -> None:
    source = model(repeats=2)
    generator = np.random.default_rng(4)
    for name in ("w", "v"):
        own = (stored(source, name) * generator.permuted(np.linspace(0.5, 2, stored(source, name).shape[1]))).astype(
            "f"
        )
        source.graph.initializer.append(numpy_helper.from_array(own, f"{name}2"))
    for node in source.graph.node:
        if node.name in (f"{FIRST}_1", f"{SECOND}_1"):
            node.input[1] += "2"
    counts = {SECOND: channel_repeats(n5=4), f"{SECOND}_1": channel_repeats(n7=3, n300=2)}
    split_model = split_channels(source, counts, **INT8)
    assert len({tensor.name for tensor in split_model.graph.initializer}) == len(split_model.graph.initializer)
    assert run(split_model, tmp_path) == pytest.approx(run(source, tmp_path), rel=1e-4, abs=1e-4)


def test_a_search_tries_split_products_alone_and_tells_what_the_file_has(tmp_path: Path) -> None:
    source = model()
    how = Quantize(
        method="auto", embeddings=False, bias_correction=True, max_drop=0, max_flips=0, reduce_range=SEVEN_BITS
    )
    write_model(source, tmp_path / "fp32.onnx")
    lost = iter([1.0, 0.0])  # the drops of the mixes: all int8, then with one matmul in fp32

    def answers(path: Path) -> np.ndarray:
        return logits_of(path, feeds())[:, 0]

    evaluator = Evaluator(
        few=answers,
        all=answers,
        score_few=lambda logits: 0.0,
        score=lambda logits: 0.0,
        texts={"tuning": 1},
        times=lambda path: {SECOND: 9.0, FIRST: 8.0},
        feeds=feeds(),
        kind=TASK_KINDS["regression"],
        folder=tmp_path,
    )
    judged = SimpleNamespace(**{**vars(evaluator), "losses_against": lambda fp32, logits: {"drop": next(lost)}})
    quantization = search(source, tmp_path / "fp32.onnx", PLAN, how, feeds(), judged)  # type: ignore[arg-type]
    (back,) = quantization.info["fp32_fallbacks"]
    assert quantization.info["goal_met"]
    assert set(quantization.info["divergence"]) == {FIRST, SECOND}
    assert max(how["static"] for how in quantization.info["divergence"].values()) < 0.01
    assert quantization.info.get("channels_added", {}) == ({} if back == SECOND else {SECOND: 16})
    assert back not in quantization.info["alphas"]


def test_tokens_of_which_nothing_comes_do_not_hide_an_outlier() -> None:
    source = model()
    table = np.concatenate([np.zeros((120, WIDTH)), np.random.default_rng(5).normal(size=(80, WIDTH))])
    table[:, 3] *= 50
    for name, value in (("t", table), ("b", np.zeros(HIDDEN))):
        tensor = next(tensor for tensor in source.graph.initializer if tensor.name == name)
        tensor.CopyFrom(numpy_helper.from_array(value.astype(np.float32), name))
    assert FIRST in smoothing.find_factors(source, PLAN, feeds(), Quantize()).alphas
