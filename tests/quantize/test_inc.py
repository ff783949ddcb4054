"""neural-compressor's quantization as files of ours: int8 weights, integer matmuls where asked for, fp32 elsewhere."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compress.errors import CheckFailed, CompressError
from compress.graphs.matmuls import matmuls
from compress.graphs.model_files import check_model, get_metadata
from compress.quantize import quantize_onnx, weights
from compress.quantize.evaluator import Evaluator
from compress.quantize.inc_folding import fold_weights
from compress.quantize.inc_tuning import _candidates
from compress.quantize.methods import QUANTIZERS, int8_format, spec_of_file
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize
from compress.tasks import TASK_KINDS

installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("neural_compressor", "torchao")),
    reason="neural-compressor and torchao (bert-compress[inc]) are not installed",
)
SEGMENTS = "bert.embeddings.token_type_embeddings/Gather"  # two rows
SECOND = "bert.encoder.layer.{}.output.dense"


def feed(batch: int, length: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Return a ragged batch: row i has i tokens of padding."""
    ids = np.random.default_rng(seed).integers(2, 120, (batch, length))
    mask = np.array([[int(place < max(1, length - row)) for place in range(length)] for row in range(batch)])
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def logits(path: Path, inputs: dict[str, np.ndarray]) -> np.ndarray:
    session = open_session(path, threads=1)
    return np.asarray(session.run(["logits"], {value.name: inputs[value.name] for value in session.get_inputs()})[0])


def evaluator(folder: Path, score: Callable[[np.ndarray], float] = lambda logits: 50.0) -> Evaluator:
    texts = feed(32, 12, seed=1)
    return Evaluator(
        few=lambda path: logits(path, texts),
        all=lambda path: logits(path, texts),
        score_few=score,
        score=score,
        texts={"tuning": 32},
        times=lambda path: {},
        feeds=[texts],
        kind=TASK_KINDS["classification"],
        folder=folder,
    )


def quantized(
    checkpoint: Path, source: Path, out: Path, judged: Evaluator | None = None, **spec: Any
) -> dict[str, Any]:
    feeds = [feed(8, 12), feed(4, 20)]
    settings = Quantize(method="inc-static", **spec)

    def read(inputs: Sequence[str], opset: int) -> Any:
        from compress.export.program import read_program

        return read_program(checkpoint, inputs, opset, kind="classification")

    return quantize_onnx(source, out, settings, feeds=feeds, evaluator=judged or evaluator(out), read_program=read)


@pytest.fixture(scope="module")
def bert(tiny_checkpoint, tiny_onnx, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path, Path]:
    """Return the info, the fp32 file and the int8 file; the fp32 file has the fast graph, which the quantizer does not read."""
    out, source = tmp_path_factory.mktemp("inc"), tiny_onnx("bert", "fast")
    return quantized(tiny_checkpoint("bert"), source, out), source, out / "model_quantized.onnx"


@installed
def test_its_words_can_have_4_bits(bert, tiny_checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "LONG", 100)
    info = quantized(tiny_checkpoint("bert"), bert[1], tmp_path, word_bits=4)
    assert (info["int4_gathers"], info["int8_gathers"]) == (1, 1)
    check_model(tmp_path / "model_quantized.onnx")


@installed
def test_all_products_but_the_classifier_are_int8_and_so_are_weights_and_tables(bert) -> None:
    info, _, path = bert
    check_model(path)
    model = onnx.load(path)
    matmul_names = matmuls(model.graph)
    head = ("bert.pooler.dense/Gemm", "classifier/Gemm")  # the first one has int8 weights
    assert (len(matmul_names.int8), matmul_names.fp32, len(matmul_names.activation)) == (12, head, 4)
    counts = [info[f"{kind}_matmuls"] for kind in ("int8", "weight_only", "fp32")]
    assert (info["int8_format"], counts) == ("qdq", [12, 1, 1])
    assert set(info["stayed_fp32"]) == {*head, SEGMENTS}
    assert (info["int8_gathers"], info["fp32_gathers"]) == (2, 1)
    assert {node.domain for node in model.graph.node} <= {"", "ai.onnx"}
    large = [tensor for tensor in model.graph.initializer if np.prod(tensor.dims) >= 32 * 32]
    assert {tensor.data_type for tensor in large} == {TensorProto.INT8}
    assert not any(node.op_type in ("Clip", "Identity") for node in model.graph.node)
    levels = sum(node.op_type == "QuantizeLinear" for node in model.graph.node)
    assert levels == 2 * 4  # of activations: a layer's queries, keys and values share one


@installed
def test_onnx_runtime_multiplies_in_integers(bert, tmp_path: Path) -> None:
    _, _, path = bert
    target = tmp_path / "optimized.onnx"

    def configure(options: Any) -> None:
        options.optimized_model_filepath = str(target)

    open_session(path, threads=1, configure=configure)
    kinds = [node.op_type for node in onnx.load(target).graph.node]
    integers = sum(kinds.count(kind) for kind in ("MatMulIntegerToFloat", "QLinearMatMul", "DynamicQuantizeMatMul"))
    assert integers == 12


@installed
@pytest.mark.parametrize(("batch", "length"), [(1, 1), (1, 7), (3, 19), (8, 24)])
def test_logits_are_near_those_of_fp32(bert, batch: int, length: int) -> None:
    _, source, path = bert
    inputs = feed(batch, length, seed=batch)
    full, int8 = logits(source, inputs), logits(path, inputs)
    assert full.shape == int8.shape
    assert np.abs(full - int8).max() > 0
    spread = logits(source, feed(32, 12, seed=1)).std(0).mean()
    assert np.abs(full - int8).mean() < 0.6 * spread  # measured: 0.2, as 8 bits are coarse at width 32


@installed
def test_names_and_metadata_are_those_of_the_fp32_file(bert) -> None:
    _, source, path = bert
    fp32, int8 = onnx.load(source), onnx.load(path)
    before, after = get_metadata(fp32), get_metadata(int8)
    assert json.loads(after.pop("quantization"))["method"] == "inc-static"
    before.pop("packed_weights", None)
    assert {name: after[name] for name in ("task", "kind", "labels", "max_length")} == {
        name: before[name] for name in ("task", "kind", "labels", "max_length")
    }
    for side in ("input", "output"):
        assert [value.name for value in getattr(int8.graph, side)] == [
            value.name for value in getattr(fp32.graph, side)
        ]
    assert [dim.dim_value for value in int8.graph.input for dim in value.type.tensor_type.shape.dim] == [0] * 6


@installed
@pytest.mark.slow
def test_a_search_gives_products_back_and_says_whether_that_was_enough(
    tiny_checkpoint, tiny_onnx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan allows a smaller drop than any candidate has; of three candidates the second drops least, so the search must
    return to it."""
    source = tiny_onnx("bert", "fast")
    # Planted drops: all int8 loses 3 points, the first fallback 1, the next 2.
    drops = iter([3.0, 1.0, 2.0, 1.0])
    fp32 = logits(source, feed(32, 12, seed=1))
    points = evaluator(tmp_path, lambda outputs: 50.0 if np.array_equal(outputs, fp32) else 50.0 - next(drops))
    first, second = SECOND.format(0), SECOND.format(1)
    monkeypatch.setattr("compress.quantize.inc_tuning._candidates", lambda model, int8: [(), (first,), (first, second)])
    info = quantized(tiny_checkpoint("bert"), source, tmp_path, points, exclude=("pooler", "word_embeddings"))
    assert (info["goal_met"], info["mixes_tried"]) == (False, 3)
    assert [lost["drop"] for lost in info["tried"]] == [3.0, 1.0, 2.0]
    assert info["reached"]["drop"] == 1.0
    assert info["fp32_fallbacks"] == [f"{first}/MatMul"]
    matmul_names = matmuls(onnx.load(tmp_path / "model_quantized.onnx").graph)
    assert set(matmul_names.fp32) == {f"{first}/MatMul", "bert.pooler.dense/Gemm", "classifier/Gemm"}
    assert (len(matmul_names.int8), info["fp32_gathers"]) == (11, 2)
    reasons = info["stayed_fp32"]
    assert set(reasons) == {*matmul_names.fp32, "bert.embeddings.word_embeddings/Gather", SEGMENTS}
    assert "pooler" in reasons["bert.pooler.dense/Gemm"]


@installed
@pytest.mark.slow
def test_shared_weights_stay_shared(tiny_checkpoint, tiny_onnx, tmp_path: Path) -> None:
    """ALBERT's one block is used twice: the activation ranges differ, and the int8 weights are stored once."""
    source = tiny_onnx("albert", "fast")
    info = quantized(tiny_checkpoint("albert"), source, tmp_path)
    model = onnx.load(tmp_path / "model_quantized.onnx")
    weights = [t for t in model.graph.initializer if t.data_type == TensorProto.INT8 and len(t.dims) == 2]
    assert info["int8_matmuls"] == 2 * 6 + 1  # the embedding projection beside the blocks
    assert sum("albert_layers" in tensor.name for tensor in weights) == 6


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quantizer = replace(QUANTIZERS["inc-static"], packages=("neural-compressor", "a-package-that-is-not-there"))
    monkeypatch.setitem(QUANTIZERS, "inc-static", quantizer)
    with pytest.raises(CompressError, match=r"needs a_package_that_is_not_there.*neural-compressor") as caught:
        quantized(tmp_path, tmp_path / "model.onnx", tmp_path)
    assert "\n" not in str(caught.value)


@installed
def test_no_texts_are_refused(tiny_onnx, tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="training texts"):
        quantize_onnx(
            tiny_onnx("bert"), tmp_path, Quantize(method="inc-static"), feeds=[], evaluator=evaluator(tmp_path)
        )


@installed
@pytest.mark.slow
def test_a_graph_that_computes_something_else_is_refused(
    bert, tiny_checkpoint, tiny_onnx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: folding reverses the channels of a scale and multiplies it by 8."""

    def wrong(model: onnx.ModelProto) -> onnx.ModelProto:
        model = fold_weights(model)
        scale = next(t for t in model.graph.initializer if t.name.endswith("_scale") and list(t.dims) == [64])
        scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale)[::-1] * np.float32(8), scale.name))
        return model

    monkeypatch.setattr("compress.quantize.inc_tuning.fold_weights", wrong)
    with pytest.raises(CheckFailed, match="neural-compressor's program"):
        quantized(tiny_checkpoint("bert"), tiny_onnx("bert", "fast"), tmp_path)
    assert not (tmp_path / "model_quantized.onnx").exists()


def unfolded(kind: str, *, channels: int | None = 0, low: int = -127) -> onnx.ModelProto:
    """Return x → quantize → a matmul with a transposed [3, 4] weight [out, in], as the exporter writes a Linear."""
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(3, 4)).astype(np.float32)
    scale = np.abs(weight).max(1) / 127.5 if channels is not None else np.float32(np.abs(weight).max() / 127.5)
    zero = np.zeros(np.shape(scale), np.int8)
    stored = {"w": weight, "s": np.asarray(scale, np.float32), "z": zero, "low": np.int8(low), "high": np.int8(127)}
    stored |= {"xs": np.float32(0.02), "xz": np.uint8(128), "b": rng.normal(size=3).astype(np.float32)}
    options: dict[str, Any] = {} if channels is None else {"axis": channels}
    nodes = [
        helper.make_node("QuantizeLinear", ["w", "s", "z"], ["q"], **options),
        helper.make_node("Clip", ["q", "low", "high"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "s", "z"], ["d"], **options),
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
    ]
    if kind == "Gemm":
        nodes.append(helper.make_node("Gemm", ["xd", "d", "b"], ["y"], name="p", transB=1))
    else:
        nodes.append(helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]))
        nodes.append(helper.make_node("MatMul", ["xd", "t"], ["m"], name="p"))
        nodes.append(helper.make_node("Add", ["m", "b"], ["y"]))
    shapes = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", size]) for n, size in (("x", 4), ("y", 3))]
    graph = helper.make_graph(
        nodes, "g", shapes[:1], shapes[1:], [numpy_helper.from_array(np.asarray(v), n) for n, v in stored.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("kind", ["MatMul", "Gemm"])
@pytest.mark.parametrize("channels", [0, None])
def test_folding_keeps_every_level(kind: str, channels: int | None, tmp_path: Path) -> None:
    """Clipping is kept too: the largest weight rounds to 128, which the limit makes 127."""
    answers = []
    for name, model in (
        ("before", unfolded(kind, channels=channels)),
        ("after", fold_weights(unfolded(kind, channels=channels))),
    ):
        path = tmp_path / f"{name}.onnx"
        onnx.save(model, path)
        check_model(path)
        x = np.random.default_rng(5).normal(size=(6, 4)).astype(np.float32)
        answers.append(open_session(path, threads=1).run(None, {"x": x})[0])
    np.testing.assert_allclose(answers[0], answers[1], rtol=0, atol=1e-5)  # four terms are summed in another order
    after = onnx.load(tmp_path / "after.onnx")
    assert matmuls(after.graph).int8 == ("p",)
    assert [node.op_type for node in after.graph.node].count("Clip") == 0
    weight = next(
        tensor for tensor in after.graph.initializer if tensor.data_type == TensorProto.INT8 and len(tensor.dims) == 2
    )
    assert list(weight.dims) == [4, 3]
    assert np.abs(numpy_helper.to_array(weight).astype(int)).max() == 127


def test_candidates_are_the_feed_forward_products_early_ones_first(tiny_onnx) -> None:
    model = onnx.load(tiny_onnx("bert"))
    names = [name for name in matmuls(model.graph).fp32 if not name.startswith("classifier")]
    second = [SECOND.format(layer) for layer in (0, 1)]
    first = [f"bert.encoder.layer.{layer}.intermediate.dense" for layer in (0, 1)]
    assert _candidates(model, names) == [(), (second[0],), tuple(second), (*second, *first)]


def test_its_settings() -> None:
    spec = Quantize(method="inc-static", portable=True, avx2=True)
    assert [int8_format(spec, precision) for precision in spec.precisions] == ["qdq", "static", "qdq"]
    assert [spec_of_file(spec, precision).method for precision in spec.precisions] == ["static", "static", "inc-static"]
    assert "method" in QUANTIZERS["inc-static"].described(spec, "qdq")
    with pytest.raises(CompressError, match="8 bits"):
        quantize_onnx(Path("model.onnx"), Path(), Quantize(method="inc-static", reduce_range=True))
