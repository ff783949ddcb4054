"""Signal-to-noise of a graph's parts, by hand and for all families and int8_formats; why a part stays fp32."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from default_suite import covering, slow
from onnx import ModelProto, TensorProto, helper, numpy_helper

from compress.graphs.matmuls import matmuls
from compress.graphs.model_files import write_model
from compress.quantize import FILES, checking, quantize_onnx
from compress.quantize.node_selection import QuantizationPlan
from compress.quantize.noise import signal_to_noise
from compress.spec.quantization import Quantize

rng = np.random.default_rng(0)
TABLE = rng.normal(size=(50, 8)).astype(np.float32)
WEIGHT = rng.normal(size=(8, 6)).astype(np.float32)
BIAS = rng.normal(size=6).astype(np.float32)
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.int64)
IDS = np.array([[1, 2, 3, 4], [5, 6, 40, 40]], np.int64)
Make = Callable[..., Path]


def toy(weight: np.ndarray, bias: np.ndarray = BIAS, table: np.ndarray = TABLE) -> ModelProto:
    """Return a table lookup, a matmul and its bias; no node reads `attention_mask`."""
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["states"], name="look_up"),
        helper.make_node("MatMul", ["states", "weight"], ["matmul"], name="linear/MatMul"),
        helper.make_node("Add", ["matmul", "bias"], ["sum"], name="linear/Add"),
        helper.make_node("Relu", ["sum"], ["logits"], name="relu"),
    ]
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "length", weight.shape[1]])
    stored = {"table": table, "weight": weight, "bias": bias}
    constants = [numpy_helper.from_array(value, name) for name, value in stored.items()]
    graph = helper.make_graph(nodes, "toy", [ids], [logits], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def measured(folder: Path, fp32: ModelProto, int8: ModelProto, repeats: int = 1) -> dict[str, float | None]:
    for name, model in (("fp32", fp32), ("int8", int8)):
        write_model(model, folder / f"{name}.onnx")
    feed = {"input_ids": IDS, "attention_mask": MASK}
    return signal_to_noise(folder / "fp32.onnx", folder / "int8.onnx", [feed] * repeats)


def test_a_graph_beside_itself_has_no_noise(tmp_path: Path) -> None:
    assert measured(tmp_path, toy(WEIGHT), toy(WEIGHT)) == {"linear/MatMul": None}


@pytest.mark.parametrize("repeats", [1, 3])
def test_decibels_by_hand_with_the_bias_and_without_padding(repeats: int, tmp_path: Path) -> None:
    coarse = np.rint(WEIGHT * 4) / 4
    other = TABLE.copy()
    other[40] += 100  # the padding token's row
    decibels = measured(tmp_path, toy(WEIGHT), toy(coarse, table=other), repeats)
    states = TABLE[IDS][MASK.astype(bool)].astype(np.float64)
    signal, noise = np.square(states @ WEIGHT + BIAS).sum(), np.square(states @ (WEIGHT - coarse)).sum()
    assert decibels == {"linear/MatMul": pytest.approx(10 * np.log10(signal / noise), abs=0.01)}


def test_copies_of_repeated_channels_do_not_count(tmp_path: Path) -> None:
    coarse = np.rint(WEIGHT * 4) / 4
    expected = measured(tmp_path, toy(WEIGHT), toy(coarse))
    repeated = np.concatenate([coarse, 3 * coarse[:, :2]], axis=1)
    assert measured(tmp_path, toy(WEIGHT), toy(repeated, np.concatenate([BIAS, BIAS[:2]]))) == expected


def test_a_signal_that_is_gone_is_a_number(tmp_path: Path) -> None:
    nothing = toy(np.zeros_like(WEIGHT), np.zeros_like(BIAS))
    (decibels,) = measured(tmp_path, nothing, toy(WEIGHT)).values()
    assert decibels is not None
    assert np.isfinite(decibels)
    assert decibels < -1000


def test_what_the_other_graph_lacks_is_left_out(tmp_path: Path) -> None:
    other = toy(WEIGHT)
    other.graph.node[2].output[0] = other.graph.node[3].input[0] = "renamed"
    assert measured(tmp_path, toy(WEIGHT), other) == {}


def feeds() -> list[dict[str, np.ndarray]]:
    mask = (np.arange(9) < np.array([[9], [6], [4]])).astype(np.int64)
    ids = np.random.default_rng(1).integers(5, 120, (3, 9)) * mask
    return [{"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}]


@pytest.mark.parametrize(
    ("family", "graph", "int8_format"),
    [
        *covering(
            ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie"),
            [("fast", int8_format) for int8_format in FILES],
        ),
        *slow(*(("albert", "plain", int8_format) for int8_format in FILES)),
    ],
)
def test_every_product_and_norm_is_measured(
    family: str, graph: str, int8_format: str, tiny_onnx: Make, tmp_path: Path
) -> None:
    """In every int8_format, so that none renames a part."""
    source = tiny_onnx(family, graph)
    quantize_onnx(source, tmp_path, Quantize(method="dynamic"), int8_format=int8_format, feeds=feeds())
    decibels = signal_to_noise(source, tmp_path / FILES[int8_format], feeds())
    model = onnx.load(source)
    wanted = {*matmuls(model.graph).fp32}
    wanted |= {node.name for node in model.graph.node if node.op_type == "LayerNormalization"}
    assert set(decibels) == wanted
    values = [value for value in decibels.values() if value is not None]
    assert len(values) == len(decibels)
    assert 5 < min(values) < max(values) < 70  # 8 bits at width 16: above plain noise and below fp32's rounding


def test_coarser_weights_are_noisier(tiny_onnx: Make, tmp_path: Path) -> None:
    source = tiny_onnx("bert", "fast")
    means = []
    for name, per_channel in (("fine", True), ("coarse", False)):
        # With more than 7 bits a CPU without VNNI may saturate, which is another noise.
        quantize_onnx(source, tmp_path / name, Quantize(method="dynamic", reduce_range=True, per_channel=per_channel))
        decibels = signal_to_noise(source, tmp_path / name / FILES["dynamic"], feeds())
        means.append(np.mean([value for value in decibels.values() if value is not None]))
    assert means[0] > means[1] + 2


def test_everything_that_stays_fp32_has_its_reason(tiny_onnx: Make, tmp_path: Path) -> None:
    spec = Quantize(method="dynamic", exclude=("layer.0.output", "classifier", "token_type"))
    info = quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, spec)
    absorbed = "bert.encoder.layer.1.attention.self.{}.absorbed/MatMul"
    (table,) = (name for name in info["stayed_fp32"] if "token_type" in name)
    assert info["stayed_fp32"] == {
        "bert.encoder.layer.0.output.dense/MatMul": "named by the recipe's `exclude`: layer.0.output",
        "classifier/MatMul": checking.CLASSIFIER,
        "bert.pooler.dense/MatMul": checking.HEAD,
        absorbed.format("key"): checking.STACKED,
        absorbed.format("value"): checking.STACKED,
        table: "named by the recipe's `exclude`: token_type",
    }
    assert set(info["expected_fp32"]) <= set(info["stayed_fp32"])
    assert len(info["stayed_fp32"]) == sum(
        info[f"{kind}"] for kind in ("fp32_matmuls", "weight_only_matmuls", "fp32_gathers")
    )


def test_tables_that_the_recipe_leaves_are_named(tiny_onnx: Make, tmp_path: Path) -> None:
    info = quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, Quantize(method="dynamic", embeddings=False))
    tables = [why for name, why in info["stayed_fp32"].items() if "embeddings" in name]
    assert sorted(tables) == sorted([checking.TABLE, checking.TABLE, checking.FEW])


def test_a_choice_of_another_kind_is_still_told(tiny_onnx: Make) -> None:
    model = onnx.load(tiny_onnx("bert", "fast"))
    name = matmuls(model.graph).fp32[0]
    plan = QuantizationPlan(int8=(), weight_only=(), kept=(name,), tables=())
    assert checking.why_fp32(model, plan, ())[name] == checking.FALLBACK
