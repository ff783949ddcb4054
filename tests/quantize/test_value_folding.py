"""Fold the factors of attention's context into the value projection: exact in every form of the graph, with no multiplication
left; where it would not be exact, the multiplication stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from default_suite import covering
from exact_sums import SEVEN_BITS
from family_teachers import LABELS, classifier_of
from onnx import ModelProto, helper, numpy_helper
from plain_teachers import plain_classifier
from pruned_toys import HEADS, NEURONS, whole
from small_graphs import every_row, logits, model_of

from compress.export import export_onnx
from compress.export.tracing import describe, example
from compress.graphs.model_files import write_model
from compress.pruning.removal import without_units
from compress.quantize import quantize_onnx, smoothing
from compress.quantize.node_selection import select_nodes, without_matmuls
from compress.quantize.noise import signal_to_noise
from compress.quantize.params import compute_params
from compress.quantize.portable import make_portable
from compress.quantize.smoothing import smooth
from compress.quantize.value_folding import divided_values, fold_into_values
from compress.quantize.weights import to_int8
from compress.runtime.folder import unpadded_beside
from compress.sessions.opening import open_session
from compress.sessions.outputs import run_logits
from compress.spec.quantization import Quantize

Factors = dict[str, np.ndarray]
RELU = {"bert": {"hidden_act": "relu"}, "distilbert": {"activation": "relu"}}
MODELS: dict[str, Callable[[], Any]] = {
    **{name: lambda name=name: classifier_of(name) for name in ("bert", "distilbert", "albert", "mpnet", "modernbert")},
    **{name: lambda name=name: plain_classifier(name) for name in ("deberta-v2", "xlnet")},
    **{f"relu {name}": lambda name=name: classifier_of(name, **RELU[name]) for name in ("bert", "distilbert")},
    "pruned bert": lambda: without_units(whole("bert"), HEADS, NEURONS),
}
FAST = covering(("bert", "distilbert", "albert", "mpnet", "pruned bert"), (20, 23))
OUTPUTS = ("attention.output.dense", "out_lin", "attention.dense", "attn.o", "attn.Wo", "rel_attn.o")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    paths: dict[tuple[str, str, int], Path] = {}

    def export(name: str, graph: str = "fast", opset: int = 20) -> Path:
        key = (name, graph, opset)
        if key not in paths:
            folder = tmp_path_factory.mktemp("model")
            model = MODELS[name]()
            model.save_pretrained(folder)
            options: dict[str, Any] = {"graph": graph, "opset": opset, "kind": "classification"}
            export_onnx(folder, folder, task_name="toy", labels=LABELS, **options)
            paths[key] = folder / "model.onnx"
        return paths[key]

    return export


def is_output(name: str) -> bool:
    return name.partition("/")[0].endswith(OUTPUTS)


def random_factors(model: ModelProto) -> Factors:
    """Return factors for all int8 matmuls; those that share an input or a weight share one vector."""
    plan = select_nodes(model, (), embeddings=True, source=Path("model.onnx"))
    sizes = {tensor.name: tensor.dims[0] for tensor in model.graph.initializer if tensor.dims}
    draws, shared, factors = np.random.default_rng(3), dict[str, np.ndarray](), Factors()
    for node in model.graph.node:
        if node.name in plan.int8:
            known = [shared[name] for name in node.input if name in shared]
            vector = known[0] if known else np.exp(draws.normal(size=sizes[node.input[1]])).astype(np.float32)
            shared |= dict.fromkeys(node.input, vector)
            factors[node.name] = vector
    return factors


def answers(model: ModelProto, folder: Path) -> np.ndarray:
    path = folder / "answers.onnx"
    write_model(model, path)
    mask = (np.arange(9) < np.array([[9], [5], [1]])).astype(np.int64)
    ids = np.random.default_rng(0).integers(5, 60, mask.shape) * mask
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return run_logits(open_session(path, threads=1), inputs)


def smoothed_inputs(model: ModelProto) -> dict[str, bool]:
    """Return, for each matmul of an attention output, whether it reads a multiplication."""
    makers = {name: node for node in model.graph.node for name in node.output}
    reads_product = {}
    for node in model.graph.node:
        if is_output(node.name) and "MatMul" in node.name and node.input[0] in makers:
            before = makers[node.input[0]]
            while before.op_type in ("QuantizeLinear", "DequantizeLinear"):
                before = makers[before.input[0]]
            reads_product[node.name] = before.op_type == "Mul"
    return reads_product


def check_exact(model: ModelProto, folder: Path) -> None:
    factors, expected = random_factors(model), answers(model, folder)
    same = pytest.approx(expected, abs=2e-6 * float(np.abs(expected).max()))  # fp32 sums in another order
    folded_model = smooth(model, factors, fold=True)
    assert answers(folded_model, folder) == same
    read = smoothed_inputs(folded_model)
    assert read and not any(read.values())
    apart = smooth(model, factors, fold=False)
    assert all(smoothed_inputs(apart).values())
    assert answers(apart, folder) == same


@pytest.mark.parametrize(("name", "opset"), FAST)
def test_a_fast_graph_gives_the_same_without_a_product(
    name: str, opset: int, exported: Callable[..., Path], tmp_path: Path
) -> None:
    """With pruned heads, ALBERT's repeated block, and the last layer, which does not compute the values of all tokens."""
    path = exported(name, "fast", opset)
    check_exact(onnx.load(path), path.parent)
    check_exact(onnx.load(unpadded_beside(path)), path.parent)  # its weights are in the padded file's folder
    portable = onnx.load(path)
    make_portable(portable)
    check_exact(portable, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "albert", "modernbert", "deberta-v2", "xlnet"])
def test_a_plain_graph_gives_the_same_without_a_product(
    name: str, exported: Callable[..., Path], tmp_path: Path
) -> None:
    check_exact(onnx.load(exported(name, "plain")), tmp_path)


@pytest.mark.slow
def test_of_a_matrix_for_queries_keys_and_values_the_values_alone_change(exported: Callable[..., Path]) -> None:
    model = onnx.load(exported("modernbert", "plain"))
    before = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    folded = fold_into_values(model.graph, random_factors(model))
    assert len(folded) == len(smoothed_inputs(model))
    changed = 0
    for tensor in model.graph.initializer:
        if "Wqkv" in tensor.name:
            same = (numpy_helper.to_array(tensor) == before[tensor.name]).all(0)
            third = len(same) // 3
            assert same[: 2 * third].all() and not same[2 * third :].any()
            changed += 1
    assert changed == len(folded)


def products(model: ModelProto) -> set[str]:
    """Return the operators whose outputs smoothed matmuls multiply by 1 / s."""
    makers = {name: node.op_type for node in model.graph.node for name in node.output}
    return {makers[node.input[0]] for node in model.graph.node if node.name.endswith("/Smooth")}


@pytest.mark.parametrize("name", ["relu bert", "relu distilbert"])
def test_what_a_relu_gives_is_divided_before_it(name: str, exported: Callable[..., Path], tmp_path: Path) -> None:
    path = exported(name)
    model = onnx.load(path)
    check_exact(model, path.parent)
    check_exact(onnx.load(unpadded_beside(path)), path.parent)
    factors = random_factors(model)
    assert "Relu" in products(smooth(model, factors, fold=False))
    assert "Relu" not in products(smooth(model, factors, fold=True))
    gelu = onnx.load(exported(name.removeprefix("relu ")))
    assert "Gelu" in products(smooth(gelu, random_factors(gelu), fold=True))  # GELU is not linear above zero


@pytest.mark.parametrize("form", ["static", "qdq"])
@pytest.mark.parametrize("name", ["bert", "albert"])
def test_an_int8_file_multiplies_no_context(
    name: str, form: str, exported: Callable[..., Path], tmp_path: Path
) -> None:
    path = exported(name)
    feeds = [{key: value.numpy() for key, value in example(describe(MODELS[name]()), 4, 9).items()}]
    info = quantize_onnx(path, tmp_path, Quantize(alpha=0.5), int8_format=form, feeds=feeds)
    assert any(is_output(matmul) for matmul in info["alphas"])
    for file in tmp_path.glob("model*.onnx"):
        read = smoothed_inputs(onnx.load(file))
        assert read and not any(read.values()), file.name


def test_the_values_int8_weights_stay_as_they_are(exported: Callable[..., Path]) -> None:
    model = onnx.load(exported("bert"))
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    names = [name for name in stored if name.endswith("value.weight")]
    before = {name: numpy_helper.to_array(stored[name]) for name in names}
    fold_into_values(model.graph, random_factors(model))
    for name in names:
        levels = [to_int8(weight, axis=1, bits=8)[0].astype(int) for weight in (before[name], to_array(model, name))]
        assert (levels[0] != levels[1]).mean() < 1e-3  # values half-way between two quantized values
        assert np.abs(levels[0] - levels[1]).max() <= 1


def test_the_noise_of_divided_values_is_that_of_whole_ones(
    exported: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, decibels = exported("bert"), []
    feeds = [{key: value.numpy() for key, value in example(describe(MODELS["bert"]()), 8, 24).items()}]
    for fold in (fold_into_values, lambda graph, factors: set()):
        monkeypatch.setattr(smoothing, "fold_into_values", fold)
        quantize_onnx(path, tmp_path, Quantize(alpha=0.5, reduce_range=SEVEN_BITS), feeds=feeds)
        decibels.append(signal_to_noise(path, tmp_path / "model_quantized.onnx", feeds))
    assert list(decibels[0]) == list(decibels[1])
    values = [name for name in decibels[0] if "self.value/" in name]
    assert len(values) == 3
    for name in values:
        # dB; 0.02 for a factor fitted to 192 tokens
        assert decibels[0][name] == pytest.approx(decibels[1][name], abs=0.5)


def to_array(model: ModelProto, name: str) -> np.ndarray:
    return numpy_helper.to_array(next(tensor for tensor in model.graph.initializer if tensor.name == name))


def test_weights_with_one_scale_for_all_columns_stay_as_they_are(exported: Callable[..., Path], tmp_path: Path) -> None:
    feeds = [{key: value.numpy() for key, value in example(describe(MODELS["bert"]()), 4, 9).items()}]
    quantize_onnx(exported("bert"), tmp_path, Quantize(alpha=0.5, per_channel=False), feeds=feeds)
    assert all(smoothed_inputs(onnx.load(tmp_path / "model_quantized.onnx")).values())


def test_repeats_with_factors_of_their_own_are_left_alone(exported: Callable[..., Path]) -> None:
    """All readers of a shared block's values must have the same factors."""
    model = onnx.load(exported("albert"))
    factors = random_factors(model)
    first = next(name for name in factors if is_output(name))
    factors[first] = factors[first] * 2
    before = model.SerializeToString(deterministic=True)
    assert fold_into_values(model.graph, factors) == set()
    assert model.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("kept", [False, True])
def test_corrections_are_of_the_values_that_the_file_has(
    kept: bool, exported: Callable[..., Path], tmp_path: Path
) -> None:
    """`kept`: the matmul behind the context stays fp32, as `auto` may choose, so the values are not divided."""
    model = onnx.load(exported("bert"))
    feeds = [{key: value.numpy() for key, value in example(describe(MODELS["bert"]()), 8, 24).items()}]
    plan = select_nodes(model, (), embeddings=True, source=Path("model.onnx"))
    spec = Quantize(alpha=0.5, bias_correction=True, reduce_range=True)
    params = compute_params(model, plan, "static", spec, feeds, smoothed=True)
    output = next(name for name in plan.int8 if is_output(name))
    value = output.replace("output.dense", "self.value")
    (scale,) = (vector for name, vector in divided_values(model.graph, params.factors).items() if name == value)
    if kept:
        plan, scale = without_matmuls(plan, [output]), np.ones_like(scale)
    int8_model = params.applied(model, plan, spec)
    node = next(node for node in int8_model.graph.node if node.name == f"{value}_quant")
    whole = to_array(model, f"{value.removesuffix('/MatMul')}.bias") + params.corrections[value]
    assert to_array(int8_model, node.input[-1]) * scale == pytest.approx(whole, abs=1e-6)
    assert np.abs(scale - 1).max() > 0.1 or kept


WIDTH = 8


def attention(*, read_too: str = "", values: str = "vb") -> ModelProto:
    """Return one head over the rows of a table. `read_too`: a tensor that is added to the logits; `values`: the values attended
    to."""
    nodes = [
        helper.make_node("Gather", ["t", "input_ids"], ["x"], name="rows"),
        helper.make_node("MatMul", ["x", "w"], ["v"], name="value/MatMul"),
        helper.make_node("Add", ["v", "b"], ["vb"], name="value/Add"),
        helper.make_node("Transpose", ["x"], ["k"], name="keys", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "k"], ["scores"], name="scores/MatMul"),
        helper.make_node("Softmax", ["scores"], ["p"], name="softmax", axis=-1),
        helper.make_node("MatMul", ["p", values], ["context"], name="context/MatMul"),
        helper.make_node("MatMul", ["context", "o"], ["out"], name="output/MatMul"),
        helper.make_node("Sum", ["out", read_too] if read_too else ["out"], ["logits"], name="sum"),
    ]
    draws = np.random.default_rng(5)
    stored = {name: draws.normal(size=(WIDTH, WIDTH)).astype(np.float32) for name in "wo"}
    stored |= {"t": draws.normal(size=(12, WIDTH)).astype(np.float32), "b": np.ones(WIDTH, np.float32)}
    return model_of(nodes, stored, WIDTH)


@pytest.mark.parametrize(
    ("read_too", "folded"), [("", True), ("x", True), ("v", False), ("vb", False), ("context", False)]
)
def test_what_another_node_reads_stays_as_it_is(read_too: str, folded: bool, tmp_path: Path) -> None:
    factors = {"output/MatMul": np.linspace(0.5, 2, WIDTH, dtype=np.float32)}
    model, feeds = attention(read_too=read_too), every_row(12, texts=3)
    expected = logits(model, tmp_path, feeds)
    smooth_model = smooth(model, factors, fold=True)
    assert any(node.op_type == "Mul" for node in smooth_model.graph.node) is not folded
    assert logits(smooth_model, tmp_path, feeds) == pytest.approx(expected, abs=1e-5)


def test_what_does_not_come_from_stored_values_stays_as_it_is() -> None:
    model = attention(values="x")
    assert fold_into_values(model.graph, {"output/MatMul": np.full(WIDTH, 2, np.float32)}) == set()
