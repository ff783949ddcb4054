"""Profiles of tiny models: every node counted once, arithmetic equal to manual counts, and the floor computed from both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compress.bench import Candidate
from compress.bench.floor import attention_macs, floor_ms, fused_attention_macs, matmul_macs, measured_rates
from compress.bench.operators import ATTENTION, FP32, INT8, REST, Operator, operators
from compress.bench.profile import profile, summary
from compress.errors import CompressError
from compress.export import export_onnx
from compress.quantize import quantize_onnx
from compress.spec.quantization import Quantize

pytestmark = pytest.mark.end_to_end

# The tiny models: 2 layers of width 32, feed-forward 64, 3 classes.
LAYERS, WIDTH, INNER, CLASSES = 2, 32, 64, 3


def weight_macs(batch: int, length: int) -> int:
    """Return the MACs of the encoder's matmuls with weights; pooler and classifier are fp32 in an int8 graph."""
    return LAYERS * batch * length * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER)


def head_macs(batch: int) -> int:
    return batch * WIDTH * (WIDTH + CLASSES)


def both_attention_products(batch: int, length: int) -> int:
    return LAYERS * 2 * batch * length * length * WIDTH


@pytest.fixture(scope="module")
def int8(tiny_onnx, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("int8")
    quantize_onnx(tiny_onnx("bert"), out, Quantize(method="dynamic"))
    return out / "model_quantized.onnx"


@pytest.fixture(scope="module")
def fast(tiny_checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graph with ONNX's Attention."""
    out = tmp_path_factory.mktemp("fast")
    names = ("no", "maybe", "yes")
    export_onnx(
        tiny_checkpoint("bert"), out, graph="fast", opset=23, task_name="toy", labels=names, kind="classification"
    )
    return out / "model.onnx"


def macs_of(nodes: list[Operator], group: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for operator in nodes:
        for precision, count in operator.macs.items():
            if operator.group == group:
                counts[precision] = counts.get(precision, 0) + count
    return counts


def test_the_arithmetic_of_an_fp32_graph_is_as_counted_by_hand(tiny_onnx) -> None:
    runs, nodes = operators(tiny_onnx("bert"), [8] * 3)
    assert runs >= 3
    assert macs_of(nodes, FP32) == {"fp32": weight_macs(3, 8) + head_macs(3)}
    assert macs_of(nodes, ATTENTION) == {"fp32": both_attention_products(3, 8)}
    assert macs_of(nodes, INT8) == macs_of(nodes, REST) == {}
    assert sum(operator.op == "Softmax" and operator.group == ATTENTION for operator in nodes) == LAYERS
    assert len({operator.name for operator in nodes}) == len(nodes)
    assert all(operator.milliseconds >= 0 for operator in nodes)


def test_the_arithmetic_of_an_int8_graph_is_told_apart_by_precision(int8: Path) -> None:
    _, nodes = operators(int8, [8])
    assert macs_of(nodes, INT8) == {"int8": weight_macs(1, 8)}
    assert macs_of(nodes, FP32) == {"fp32": head_macs(1)}
    assert macs_of(nodes, ATTENTION) == {"fp32": both_attention_products(1, 8)}


def test_fused_attention_counts_what_its_two_products_did(fast: Path) -> None:
    _, nodes = operators(fast, [8])
    fused = [operator for operator in nodes if operator.op == "Attention"]
    assert len(fused) == LAYERS - 1  # the last layer's keys and values are absorbed
    assert all(operator.group == ATTENTION for operator in fused)
    whole = both_attention_products(1, 8) // LAYERS
    assert [operator.macs["fp32"] for operator in fused] == [whole]
    # One query: scores and context of each head over 8 states of the whole width, and the absorbed keys and values.
    heads = 2
    every = sum(sum(operator.macs.values()) for operator in nodes)
    others = (LAYERS - 1) * 8 * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER) + 2 * WIDTH * WIDTH + 2 * WIDTH * INNER
    assert every == whole + others + head_macs(1) + 2 * WIDTH * WIDTH + 2 * heads * 8 * WIDTH


@pytest.mark.parametrize(
    ("left", "out", "expected"),
    [
        ((2, 5, 7), (2, 5, 3), 2 * 5 * 7 * 3),
        ((5, 7), (5, 3), 5 * 7 * 3),
        ((7, 5), (5, 3), 5 * 7 * 3),  # a transposed left operand
        ((2, 4, 5, 7), (2, 4, 5, 5), 2 * 4 * 5 * 5 * 7),
        ((5, 7), (2, 5, 3), 2 * 5 * 7 * 3),  # one left operand for the whole batch
        ((1, 5, 7), (3, 5, 3), 3 * 5 * 7 * 3),
    ],
)
def test_a_product_s_arithmetic_comes_from_its_shapes(left, out, expected: int) -> None:
    assert matmul_macs(left, out) == expected


def test_attention_s_arithmetic_comes_from_its_shapes() -> None:
    merged = attention_macs((2, 5, 12), (2, 9, 12), (2, 5, 12))
    assert merged == attention_macs((2, 3, 5, 4), (2, 3, 9, 4), (2, 3, 5, 4)) == 2 * 2 * 5 * 9 * 12
    assert fused_attention_macs((2, 9, 10), (2, 9, 12)) == (2 * 9 * 10 * 36, 2 * 2 * 9 * 9 * 12)


def test_rates_are_measured_and_make_the_floor() -> None:
    rates = measured_rates()
    assert set(rates) == {"int8", "fp32"}
    assert all(rate > 1e6 for rate in rates.values())
    assert floor_ms({"int8": 3_000_000, "fp32": 1_000_000}, {"int8": 3e9, "fp32": 1e9}) == pytest.approx(2)


def test_shares_and_distances_come_from_the_operators() -> None:
    nodes = [
        Operator("a", "MatMulIntegerToFloat", INT8, 1.0, {"int8": 2_000_000}),
        Operator("b", "MatMulIntegerToFloat", INT8, 3.0, {"int8": 4_000_000}),
        Operator("c", "Gemm", FP32, 1.0, {"fp32": 1_000_000}),
        Operator("d", "MatMul", ATTENTION, 2.0, {"fp32": 1_000_000}),
        Operator("e", "Gelu", REST, 1.0),
    ]
    shape_profile = summary((1, 8), 20, nodes, 10.0, {"int8": 6e9, "fp32": 1e9})
    assert [(kind.op, kind.count, kind.milliseconds, kind.macs) for kind in shape_profile.kinds[:2]] == [
        ("MatMulIntegerToFloat", 2, 4.0, 6_000_000),
        ("MatMul", 1, 2.0, 1_000_000),
    ]
    assert shape_profile.groups == {INT8: 0.5, ATTENTION: 0.25, FP32: 0.125, REST: 0.125}
    assert shape_profile.gemm_share == 0.625
    assert shape_profile.macs == {"int8": 6_000_000, "fp32": 2_000_000}
    assert (shape_profile.operators_ms, shape_profile.matmuls_ms, shape_profile.whole_ms) == (8, 5, 10)
    assert (shape_profile.floor_ms, shape_profile.matmuls_floor_ms) == (pytest.approx(3), pytest.approx(2))
    assert (shape_profile.matmuls_over_floor, shape_profile.whole_over_floor) == (
        pytest.approx(2.5),
        pytest.approx(10 / 3),
    )


def test_a_profile_has_every_shape_and_its_shares_sum_to_one(int8: Path, tiny_onnx) -> None:
    both = [Candidate("fp32", tiny_onnx("bert"), "onnx"), Candidate("int8", int8, "onnx")]
    by_model = profile([*both, Candidate("torch", Path("not/opened"), "torch")], ((1, 8), (2, 12)))
    assert list(by_model) == ["fp32", "int8"]
    for name, profiles in by_model.items():
        assert [(shape_profile.batch, shape_profile.length) for shape_profile in profiles] == [(1, 8), (2, 12)]
        for shape_profile in profiles:
            assert sum(kind.share for kind in shape_profile.kinds) == pytest.approx(1)
            assert sum(shape_profile.groups.values()) == pytest.approx(1)
            assert sum(kind.milliseconds for kind in shape_profile.kinds) == pytest.approx(shape_profile.operators_ms)
            assert sum(kind.macs for kind in shape_profile.kinds) == sum(shape_profile.macs.values())
            assert shape_profile.whole_ms > 0
            assert shape_profile.matmuls_over_floor == pytest.approx(
                shape_profile.matmuls_ms / shape_profile.matmuls_floor_ms
            )
            assert (INT8 in shape_profile.groups) == (name == "int8")


@pytest.mark.slow
def test_what_cannot_be_profiled_is_one_line(tiny_onnx, tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="expected an ONNX file run by ONNX Runtime and a shape; found none"):
        profile([Candidate("torch", Path("not/opened"), "torch")], ((1, 8),))
    with pytest.raises(CompressError, match=r"bench: short: .* takes at most 24 tokens, asked for 25"):
        profile([Candidate("short", tiny_onnx("bert"), "onnx")], ((1, 25),))
    with pytest.raises(CompressError, match=r"^--profile: expected a model with matmuls, found 1 operators$"):
        summary((1, 8), 3, [Operator("a", "Gelu", REST, 1.0)], 1.0, {"int8": 1.0, "fp32": 1.0})


def test_a_product_that_cannot_be_counted_is_named_not_left_out(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((3, 1, 2), np.float32), "weight")
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["ids"], name="cast", to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["ids", "axis"], ["wide"], name="wide"),
        helper.make_node("Conv", ["wide", "weight"], ["logits"], name="conv"),
    ]
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)],
        [weight, numpy_helper.from_array(np.array([1]), "axis")],
    )
    path = tmp_path / "conv.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    with pytest.raises(
        CompressError, match=r"conv\.onnx: the multiply-accumulates of a (Fused)?Conv cannot be counted"
    ):
        operators(path, [8])
