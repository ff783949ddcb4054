"""ALBERT in ONNX: shared layers are stored once, in fp32 and int8, and the graphs agree with torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from transformers import AlbertConfig, AlbertForSequenceClassification, AutoModelForSequenceClassification

from compress.export import export_onnx
from compress.export.tracing import describe, example
from compress.graphs.matmuls import matmuls
from compress.graphs.rewriting import fold_transposes
from compress.quantize import quantize_onnx, smoothing
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

LABELS = ("no", "maybe", "yes")
TASK: dict[str, Any] = {"graph": "plain", "opset": 20, "task_name": "toy", "labels": LABELS, "kind": "classification"}
LAYERS, HIDDEN, FFN, EMBEDDING, VOCABULARY, POSITIONS = 4, 32, 48, 16, 120, 24
TABLES = (VOCABULARY, POSITIONS, 2)  # number of rows of each
FORMS = {"all": 1, "groups": 2, "none": LAYERS}  # sharing -> number of blocks
forms = pytest.mark.parametrize("form", ["all", "groups", "none"])


class AlbertModels(NamedTuple):
    torch: Any
    fp32: Path
    int8: Path
    info: dict[str, Any]


def albert(form: str) -> Any:
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "embedding_size": EMBEDDING,
        "hidden_size": HIDDEN,
        "num_attention_heads": 2,
    }
    sizes |= {"intermediate_size": FFN, "max_position_embeddings": POSITIONS, "num_hidden_layers": LAYERS}
    sizes |= {"num_hidden_groups": FORMS[form], "num_labels": len(LABELS)}
    torch.manual_seed(1)
    model = AutoModelForSequenceClassification.from_config(AlbertConfig(**sizes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # no two weights are equal, and every part matters
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


@pytest.fixture(scope="module")
def albert_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], AlbertModels]:
    by_form: dict[str, AlbertModels] = {}

    def make(form: str) -> AlbertModels:
        if form not in by_form:
            folder = tmp_path_factory.mktemp(f"albert-{form}")
            model = albert(form)
            model.save_pretrained(folder)
            export_onnx(folder, folder, **TASK)
            info = quantize_onnx(folder / "model.onnx", folder, Quantize(method="dynamic"))
            by_form[form] = AlbertModels(model, folder / "model.onnx", folder / "model_quantized.onnx", info)
        return by_form[form]

    return make


def shapes(path: Path, kinds: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the shapes of the matrices of these types, sorted."""
    tensors = onnx.load(path).graph.initializer
    return sorted(tuple(tensor.dims) for tensor in tensors if tensor.data_type in kinds and len(tensor.dims) == 2)


def matrices(form: str, least: int = 0) -> list[tuple[int, int]]:
    """Return the shape of every distinct weight, as the matmuls read it: tables with at least `least` rows, projection, pooler,
    blocks."""
    tables = [(rows, EMBEDDING) for rows in TABLES if rows >= least]
    own = [(EMBEDDING, HIDDEN), (HIDDEN, HIDDEN)]
    block = [*[(HIDDEN, HIDDEN)] * 4, (HIDDEN, FFN), (FFN, HIDDEN)]
    return sorted([*tables, *own, *block * FORMS[form]])


def flat(tensor_shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return sorted(tuple(sorted(shape)) for shape in tensor_shapes)


@pytest.mark.slow
@forms
def test_each_shared_weight_is_stored_once(albert_models: Callable[[str], AlbertModels], form: str) -> None:
    models = albert_models(form)
    classifier = (len(LABELS), HIDDEN)
    assert flat(shapes(models.fp32, (TensorProto.FLOAT,))) == flat([*matrices(form), classifier])
    assert flat(shapes(models.int8, (TensorProto.INT8, TensorProto.UINT8))) == flat(matrices(form, least=16))
    scales = [(rows, 1) for rows in TABLES if rows >= 16]
    segments = (2, EMBEDDING)
    assert flat(shapes(models.int8, (TensorProto.FLOAT,))) == flat([classifier, segments, *scales])
    floats = sum(numpy_helper.to_array(t).size for t in onnx.load(models.fp32).graph.initializer if t.data_type == 1)
    assert 0 <= floats - models.torch.num_parameters() < 50  # and a few constants, such as the mask's


@pytest.mark.slow
@forms
def test_every_product_with_a_weight_is_int8_but_the_classifier(
    albert_models: Callable[[str], AlbertModels], form: str
) -> None:
    models = albert_models(form)
    before, after = (matmuls(onnx.load(path).graph) for path in (models.fp32, models.int8))
    assert len(before.fp32) == 6 * LAYERS + 3  # each use is its own matmul; projection, pooler, classifier
    assert len(after.int8) == models.info["int8_matmuls"] == 6 * LAYERS + 1
    assert models.info["weight_only_matmuls"] == 1  # the pooler
    assert models.info["expected_fp32"] == ["classifier/Gemm"]
    assert len(after.fp32) == 2
    assert (models.info["int8_gathers"], models.info["fp32_gathers"]) == (2, 1)  # the segments' two rows
    assert len(after.activation) == 2 * LAYERS


@pytest.mark.slow
@forms
def test_torch_onnx_and_int8_agree_over_lengths_and_batches(
    albert_models: Callable[[str], AlbertModels], form: str
) -> None:
    """fp32 agrees to rounding, 1e-4 for logits near 1. int8: a weight is off by up to 1/254 of its channel's largest and an
    activation by 1/510 of its tensor's range, about 1 % for each of 24 successive matmuls, 32 wide: on average below 35 % of the
    logits' spread over texts, as for the other families."""
    models = albert_models(form)
    sessions = [open_session(path, threads=1) for path in (models.fp32, models.int8)]
    errors, logits = [], []
    for length in range(1, POSITIONS + 1):
        for batch in (1, 3):
            inputs = example(describe(models.torch), batch, length)
            with torch.inference_mode():
                wanted = models.torch(**inputs).logits.numpy()
            fed = {name: value.numpy() for name, value in inputs.items()}
            fp32, int8 = (np.asarray(session.run(None, fed)[0]) for session in sessions)
            assert fp32.shape == int8.shape == (batch, len(LABELS))
            np.testing.assert_allclose(fp32, wanted, rtol=0, atol=1e-4 * max(1, np.abs(wanted).max()))
            errors.append(np.abs(int8 - wanted))
            logits.append(wanted)
    assert np.concatenate(errors).mean() < 0.35 * np.concatenate(logits).std(0).mean()


def turned(orders: list[list[int]]) -> onnx.ModelProto:
    """Return matmuls with one stored 3 × 5 matrix, each behind its own Transpose if its order of axes is not empty."""
    value = helper.make_tensor_value_info
    nodes, outputs = [], []
    for number, order in enumerate(orders):
        name = f"turned{number}" if order else "weight"
        nodes += [helper.make_node("Transpose", ["weight"], [name], perm=order)] if order else []
        width = 5 if order == [1, 0] else 3
        nodes.append(helper.make_node("MatMul", [f"x{width}", name], [f"y{number}"]))
        outputs.append(value(f"y{number}", TensorProto.FLOAT, None))
    inputs = [value(f"x{width}", TensorProto.FLOAT, [2, width]) for width in (3, 5)]
    weight = numpy_helper.from_array(np.arange(15, dtype=np.float32).reshape(3, 5), "weight")
    return helper.make_model(helper.make_graph(nodes, "g", inputs, outputs, [weight]))


def test_a_weight_that_every_product_turns_is_stored_turned() -> None:
    model = turned([[1, 0], [1, 0], [1, 0]])
    assert fold_transposes(model.graph) == 3
    assert [node.op_type for node in model.graph.node] == ["MatMul"] * 3
    assert {node.input[1] for node in model.graph.node} == {"weight"}
    (weight,) = model.graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(weight), np.arange(15).reshape(3, 5).T)


@pytest.mark.parametrize("orders", [[[1, 0], []], [[1, 0], [0, 1]]])
def test_a_weight_that_is_read_in_two_ways_is_left_alone(orders: list[list[int]]) -> None:
    model = turned(orders)
    before = model.SerializeToString(deterministic=True)
    assert fold_transposes(model.graph) == 0
    assert model.SerializeToString(deterministic=True) == before


def test_a_turned_weight_that_is_an_output_stays() -> None:
    model = turned([[1, 0]])
    model.graph.output.add().CopyFrom(helper.make_tensor_value_info("turned0", TensorProto.FLOAT, [5, 3]))
    assert fold_transposes(model.graph) == 0


@pytest.mark.slow
def test_no_transpose_of_a_stored_weight_is_left(albert_models: Callable[[str], AlbertModels]) -> None:
    """The exporter keeps those of large shared weights; here the size threshold is not reached."""
    graph = onnx.load(albert_models("all").fp32).graph
    stored = {tensor.name for tensor in graph.initializer}
    assert not [node.name for node in graph.node if node.op_type == "Transpose" and node.input[0] in stored]


@pytest.mark.slow
@pytest.mark.parametrize(("graph", "settings", "matmuls"), [("plain", {"method": "dynamic"}, 73), ("fast", {}, 71)])
def test_an_albert_of_base_size_is_48_mb_and_13_mb_in_int8(
    tmp_path: Path, graph: str, settings: dict[str, Any], matmuls: int
) -> None:
    """12 × 768, E 128, 30,522 words: 11.7 million weights of four bytes or one byte. Six matmuls per layer and the projection;
    the fast graph, which recipes ship, has absorbed the last layer's keys and values."""
    sizes: dict[str, Any] = {"vocab_size": 30522, "embedding_size": 128, "hidden_size": 768, "num_attention_heads": 12}
    sizes |= {"intermediate_size": 3072, "max_position_embeddings": 512, "num_hidden_layers": 12, "num_labels": 3}
    torch.manual_seed(0)
    AlbertForSequenceClassification(AlbertConfig(**sizes)).save_pretrained(tmp_path)
    exported = export_onnx(tmp_path, tmp_path, **{**TASK, "graph": graph})
    info = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(**settings), feeds=[one_batch()])
    assert exported["bytes"] == (tmp_path / "model.onnx").stat().st_size <= 48e6
    assert info["bytes"] == (tmp_path / "model_quantized.onnx").stat().st_size <= 13e6
    assert info["int8_matmuls"] == matmuls


def one_batch() -> dict[str, Any]:
    ids = np.random.default_rng(0).integers(5, 30522, (2, 8))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}


@pytest.mark.slow
def test_an_int8_file_with_smoothing_and_split_neurons_is_a_quarter_of_fp32(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """6 × 384, E 128: in a small file, names, biases and the like count most."""
    monkeypatch.setattr(smoothing, "_SPLIT_GAIN", 10.0)  # random weights have no outlier channels
    sizes: dict[str, Any] = {"vocab_size": 30522, "embedding_size": 128, "hidden_size": 384, "num_attention_heads": 12}
    sizes |= {"intermediate_size": 1536, "max_position_embeddings": 512, "num_hidden_layers": 6, "num_labels": 3}
    torch.manual_seed(0)
    AlbertForSequenceClassification(AlbertConfig(**sizes)).save_pretrained(tmp_path)
    export_onnx(tmp_path, tmp_path, **{**TASK, "graph": "fast"})
    info = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(alpha=0.5), feeds=[one_batch()])
    assert set(info["channels_added"].values()) == {16}
    assert info["ratio_to_fp32"] <= 0.255
