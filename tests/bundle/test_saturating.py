"""`verify` on int8 kernels: sums that overflow 16 bits, differences explained by that, matmuls without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compress.bundle import read_bundle, verify
from compress.bundle.document import BundleInfo, write_bundle
from compress.bundle.files import measure
from compress.bundle.probes import probe_logits
from compress.bundle.verifying import saturating
from compress.bundle.verifying.saturating import _simulated_logits, integer_kernels
from compress.errors import CheckFailed, CompressError
from compress.machine import saturates
from compress.quantize import quantize_onnx
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize


def _reseal(folder: Path, **changes: Any) -> None:
    info = BundleInfo.model_validate(read_bundle(folder).model_dump() | changes)
    write_bundle(info.model_copy(update={"files": measure(folder)}), folder)


def _details(folder: Path, **how: Any) -> dict[str, tuple[bool, str]]:
    return {check.name: (check.passed, check.detail) for check in verify(folder, **how).checks}


@pytest.fixture
def heavy(bundle: Path) -> Path:
    """A bundle whose int8 file saturates often: all-positive word rows, and weights at the extreme levels."""
    path = bundle / "onnx" / "model.onnx"
    model = onnx.load(path)
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    rng = np.random.default_rng(0)
    changed = {
        "words": np.abs(numpy_helper.to_array(stored["words"])) + 2,
        "first": np.where(rng.random(48) < 0.5, 0.1, 0.02)[None].repeat(48, 0),
    }
    for name, value in changed.items():
        stored[name].CopyFrom(numpy_helper.from_array(value.astype(np.float32), name))
    onnx.save(model, path)
    quantize_onnx(path, path.parent, Quantize(method="dynamic"))
    texts = read_bundle(bundle).probe.texts
    logits = {name: probe_logits(bundle, name, texts, threads=1).tolist() for name in ("fp32", "int8")}
    _reseal(bundle, probe={"texts": texts, "logits": logits})
    return bundle


def _recorded_elsewhere(bundle: Path) -> None:
    """Pretend that the record is from an x86 CPU of the other kind, with int8 answers as close to fp32 as possible."""
    info = read_bundle(bundle)
    other = _simulated_logits(bundle, info, "int8", saturating=not saturates())
    assert np.abs(other - np.array(info.probe.logits["int8"])).max() > 1, "else there is nothing to find"
    logits = {"fp32": other.tolist(), "int8": other.tolist()}
    _reseal(bundle, probe={"texts": info.probe.texts, "logits": logits})


def test_sums_that_leave_16_bits_are_counted_and_located(heavy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed, detail = _details(heavy)["saturation int8"]
    assert passed
    assert "pair sums exceed 16 bits (most in first/MatMul" in detail
    monkeypatch.setattr(saturating.machine, "saturates", lambda: True)
    isa = ", ".join(read_bundle(heavy).measured_on.isa)
    _, detail = _details(heavy)["saturation int8"]
    assert f"saturate on this CPU, which has no VNNI; the scores were measured on one with {isa}" in detail
    monkeypatch.setattr(saturating.machine, "saturates", lambda: False)
    assert "exact on this CPU, and saturate on x86 CPUs without VNNI" in _details(heavy)["saturation int8"][1]


def test_7_bit_weights_are_said_to_be_the_same_everywhere(bundle: Path) -> None:
    quantize_onnx(bundle / "onnx" / "model.onnx", bundle / "onnx", Quantize(method="dynamic", reduce_range=True))
    _reseal(bundle)
    details = _details(bundle, simulate=True)
    assert details["saturation int8"][1].startswith("none of ")
    assert details["simulated int8"][0]


def test_a_difference_that_saturation_explains_is_said_to_be_that(heavy: Path) -> None:
    assert _details(heavy)["probe int8"][0]
    _recorded_elsewhere(heavy)
    passed, detail = _details(heavy)["probe int8"]
    assert not passed
    assert "16-bit saturation is the cause" in detail
    expected = "use onnx/model.onnx on this CPU" if saturates() else "the record is that of a CPU without VNNI"
    assert expected in detail


def test_a_difference_of_another_cause_is_not(heavy: Path) -> None:
    path = heavy / "onnx" / "model_quantized.onnx"
    model = onnx.load(path)
    tensor = next(tensor for tensor in model.graph.initializer if tensor.name == "second")
    tensor.CopyFrom(numpy_helper.from_array(-numpy_helper.to_array(tensor), "second"))
    onnx.save(model, path)
    _reseal(heavy)
    passed, detail = _details(heavy)["probe int8"]
    assert not passed
    assert "saturation does not explain it" in detail


def test_an_answer_that_the_other_kind_of_cpu_would_not_give_fails_where_it_is_asked_for(heavy: Path) -> None:
    assert "simulated int8" not in _details(heavy)
    _recorded_elsewhere(heavy)  # so that the limit is that of a file without quantization error
    passed, detail = _details(heavy, simulate=True)["simulated int8"]
    assert not passed
    assert f"a CPU {'with' if saturates() else 'without'} VNNI answers differently from this one" in detail


def test_what_cannot_be_simulated_is_said_to_be_unknown(heavy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise NotImplementedError("no such operator")

    _recorded_elsewhere(heavy)
    monkeypatch.setattr(saturating, "simulate", fails)
    assert "cannot be told: no such operator" in _details(heavy)["probe int8"][1]


def test_a_product_that_is_computed_in_fp32_is_said_to_be(bundle: Path) -> None:
    assert integer_kernels(bundle / "onnx" / "model_quantized.onnx") == "all 1 int8 matmuls are computed in integers"
    path = _restored(bundle.parent / "restored.onnx")
    with pytest.raises(CheckFailed, match="1 of 1 int8 matmuls are computed in fp32: this ONNX Runtime has no int8"):
        integer_kernels(path)


def _restored(path: Path) -> Path:
    """Write a product of 16-bit weights and activations, which ONNX Runtime multiplies in fp32."""
    node = helper.make_node
    weight = helper.make_tensor("w", TensorProto.INT16, [4, 2], list(range(8)))
    stored = [weight, numpy_helper.from_array(np.array(0.1, np.float32), "s")]
    stored += [
        helper.make_tensor("zw", TensorProto.INT16, [], [0]),
        helper.make_tensor("zx", TensorProto.UINT16, [], [9]),
    ]
    nodes = [
        node("QuantizeLinear", ["x", "s", "zx"], ["q"], name="q"),
        node("DequantizeLinear", ["q", "s", "zx"], ["a"], name="a"),
        node("DequantizeLinear", ["w", "s", "zw"], ["b"], name="b"),
        node("MatMul", ["a", "b"], ["logits"], name="product"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 2])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, stored)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def test_an_operator_without_a_kernel_is_named(tmp_path: Path) -> None:
    value = helper.make_tensor_value_info
    inputs = [value(name, TensorProto.BFLOAT16, [2, 2]) for name in "ab"]
    node = helper.make_node("MatMul", ["a", "b"], ["y"], name="product")
    graph = helper.make_graph([node], "g", inputs, [value("y", TensorProto.BFLOAT16, [2, 2])])
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    with pytest.raises(CompressError, match=r"onnxruntime [\d.]+ has no kernel here for an operator of it: .*MatMul"):
        open_session(path)
