"""The fast graph against torch, for each family and shape, and its parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import keeping
from transformers import (
    AlbertConfig,
    AutoModelForSequenceClassification,
    BertConfig,
    DebertaV2Config,
)

from compress.errors import CheckFailed, CompressError
from compress.export import export_onnx, fast, parity
from compress.export.fast import building, layers
from compress.export.fast.heads import GRAPH_HEADS
from compress.export.tracing import describe, example
from compress.graphs.model_files import write_model
from compress.quantize import quantize_onnx
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize
from compress.version import __version__

OPSETS = (20, 23)
FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
LABELS = ("no", "maybe", "yes")
TASK: dict[str, Any] = {"opset": 20, "task_name": "toy", "labels": LABELS, "kind": "classification", "graph": "fast"}
SHAPES = [(1, 1), (1, 2), (1, 24), (2, 2), (3, 19), (8, 24)]
SMALL: dict[str, Any] = {"vocab_size": 120, "max_position_embeddings": 24, "num_labels": 3}
SIZES: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 64}


def sized(form: Any = BertConfig, **fields: Any) -> Any:
    return form(**SMALL | SIZES | fields)


def random_model(config: Any) -> Any:
    torch.manual_seed(3)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # larger than the default, so that every part matters
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def built(model: Any, path: Path, opset: int = 20) -> Path:
    graph = fast.build_fast(model, opset=opset)
    assert graph is not None
    write_model(graph, path)
    onnx.checker.check_model(str(path), full_check=True)
    return path


def worst(model: Any, path: Path, shapes: list[tuple[int, int]] | None = None) -> float:
    """Return the largest error of the logits over shapes with ragged padding."""
    session, errors = open_session(path, threads=1), []
    for batch, length in shapes or SHAPES:
        inputs = example(describe(model), batch, length)
        with torch.inference_mode():
            expected = model(**inputs).logits.numpy()
        logits = np.asarray(session.run(["logits"], {name: value.numpy() for name, value in inputs.items()})[0])
        assert logits.shape == expected.shape
        errors.append(np.abs(logits - expected).max())
    return float(max(errors))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_agrees_with_torch(
    family: str, opset: int, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
):
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint(family)).eval()
    assert (
        worst(model, built(model, tmp_path / "m.onnx", opset)) < 2e-6
    )  # fp32 sums in another order, logits of order 1


@pytest.mark.parametrize(
    "config",
    [
        sized(hidden_size=312, num_attention_heads=12, intermediate_size=1200),
        sized(hidden_act="gelu_new"),
        sized(hidden_act="relu", layer_norm_eps=1e-3),
        sized(type_vocab_size=1),
        sized(num_hidden_layers=1),
        sized(AlbertConfig, num_hidden_groups=3, embedding_size=16),
        sized(AlbertConfig, num_hidden_layers=4, num_hidden_groups=2, embedding_size=32),
    ],
    ids=["312 / 12 heads", "tanh gelu", "relu", "one segment", "one layer", "three groups", "two groups"],
)
@pytest.mark.parametrize("opset", OPSETS)
def test_sizes_and_variants(config: Any, opset: int, tmp_path: Path):
    model = random_model(config)
    assert worst(model, built(model, tmp_path / "m.onnx", opset)) < 1e-5  # fp32, sums over up to 1,200 neurons


def test_a_regressor(tmp_path: Path):
    model = random_model(sized(num_labels=1))
    path = built(model, tmp_path / "m.onnx")
    assert worst(model, path) < 2e-6
    assert [dim.dim_value for dim in onnx.load(path).graph.output[0].type.tensor_type.shape.dim][1] == 1


def test_the_tolerance_grows_with_depth_alone():
    assert [parity.fast_tolerance(layers) for layers in (1, 6, 12, 24)] == pytest.approx([1e-5, 1e-5, 1.6e-5, 2.8e-5])


@pytest.mark.parametrize("opset", OPSETS)
def test_padding_never_changes_a_text_s_logits(opset: int, tiny_checkpoint: Callable[[str], Path], tmp_path: Path):
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint("bert")).eval()
    session = open_session(built(model, tmp_path / "m.onnx", opset), threads=1)
    batch = {name: value.numpy() for name, value in example(describe(model), 4, 20).items()}
    (together,) = session.run(["logits"], batch)
    for row, kept in enumerate(batch["attention_mask"].sum(1)):
        (alone,) = session.run(["logits"], {name: value[row : row + 1, :kept] for name, value in batch.items()})
        np.testing.assert_allclose(np.asarray(together)[row], np.asarray(alone)[0], atol=2e-6)  # fp32


@pytest.mark.parametrize(("opset", "attention_nodes"), [(20, 0), (23, 2)])
def test_the_last_layer_is_computed_for_one_token_alone(opset: int, attention_nodes: int, tmp_path: Path):
    model = random_model(sized())
    path = built(model, tmp_path / "m.onnx", opset)
    graph = onnx.shape_inference.infer_shapes(onnx.load(path), data_prop=True).graph
    shapes = {
        value.name: [dim.dim_value or dim.dim_param for dim in value.type.tensor_type.shape.dim]
        for value in graph.value_info
    }
    stored = {tensor.name for tensor in graph.initializer}
    linear = [node for node in graph.node if node.op_type == "MatMul" and node.input[1] in stored]
    lengths = {node.name: shapes[node.output[0]][1] for node in linear}
    last = {
        name.rpartition("/")[0].removeprefix("bert.encoder.layer.2."): length
        for name, length in lengths.items()
        if ".2." in name
    }
    assert last == dict.fromkeys(
        ("attention.self.query", "attention.output.dense", "intermediate.dense", "output.dense"), 1
    )  # keys and values are absorbed
    assert Counter(node.op_type for node in graph.node)["Gemm"] == 0
    assert Counter(node.op_type for node in graph.node)["Attention"] == attention_nodes


@pytest.mark.parametrize(("opset", "ir_version"), [(20, 9), (21, 10), (23, 11)])
def test_the_opset_and_the_ir_version_are_the_oldest_that_serve(
    opset: int, ir_version: int, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
):
    export_onnx(tiny_checkpoint("bert"), tmp_path, **{**TASK, "opset": opset})
    for name in ("model.onnx", "model_unpadded.onnx"):
        model = onnx.load(tmp_path / name, load_external_data=False)
        assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", opset)]
        assert model.ir_version == ir_version
        assert (model.producer_name, model.producer_version) == ("bert-compress", __version__)


@pytest.mark.parametrize(("groups", "blocks"), [(1, 1), (2, 2), (4, 4)])
def test_a_shared_block_stands_once(groups: int, blocks: int, tmp_path: Path):
    config = sized(AlbertConfig, num_hidden_layers=4, num_hidden_groups=groups, embedding_size=16)
    model = random_model(config)
    names = [tensor.name for tensor in onnx.load(built(model, tmp_path / "m.onnx")).graph.initializer]
    assert sum(name.endswith(".ffn.weight") for name in names) == blocks
    assert sum(name.endswith("query.weight") for name in names) == blocks


@pytest.mark.parametrize("family", keeping(FAMILIES, ["bert"]))  # beside the exporter's graph
def test_int8_products_and_their_agreement(
    family: str, tiny_checkpoint: Callable[[str], Path], tiny_onnx: Callable[[str], Path], tmp_path: Path
):
    """Every weight matmul but the classifier's becomes int8, with an error no larger than on the exporter's graph."""
    info = export_onnx(tiny_checkpoint(family), tmp_path, **TASK)
    assert info["graph"] == "fast"
    assert info["opset"] == 20
    int8_info = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    # keys, values and pooler; classifier
    assert (int8_info["weight_only_matmuls"], int8_info["fp32_matmuls"]) == (3, 1)
    assert int8_info["int8_matmuls"] == info["weight_matmuls"] - 4
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint(family)).eval()
    quantize_onnx(tiny_onnx(family), tmp_path / "plain", Quantize(method="dynamic"))
    errors = [worst(model, folder / "model_quantized.onnx") for folder in (tmp_path, tmp_path / "plain")]
    assert errors[0] < 1.3 * errors[1]  # activation ranges are those of a batch, which differs in the last layer


def test_what_is_not_known_is_refused(tmp_path: Path, tiny_checkpoint: Callable[[str], Path]):
    assert fast.build_fast(random_model(sized(hidden_act="silu"))) is None
    config = sized(DebertaV2Config)
    assert fast.build_fast(random_model(config)) is None
    model = random_model(sized(hidden_act="silu"))
    model.config.id2label, model.config.label2id = dict(enumerate(LABELS)), {name: at for at, name in enumerate(LABELS)}
    model.save_pretrained(tmp_path / "silu")
    with pytest.raises(CompressError, match=r"config.json: the fast graph is for bert, .*: export with graph: plain"):
        export_onnx(tmp_path / "silu", tmp_path / "out", **TASK)
    assert not (tmp_path / "out").exists()


def wrong(right: Callable[..., str]) -> Callable[..., str]:
    """Multiply the output of `right` by 1.01."""
    return lambda graph, *parts: graph.op(
        "Mul", [right(graph, *parts), graph.weight("wrong", np.array(1.01, np.float32))], "wrong"
    )


@pytest.mark.parametrize(
    ("module", "name", "part"),
    [(building, "embed", "embeddings"), (layers, "_feed_forward", "layer 1"), (None, "", "head")],
)
def test_a_wrong_graph_is_not_kept_and_the_message_names_the_part(
    module: Any,
    name: str,
    part: str,
    tiny_checkpoint: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    head = GRAPH_HEADS["classification"]
    if module is None:
        monkeypatch.setitem(GRAPH_HEADS, "classification", replace(head, logits=wrong(head.logits)))
    else:
        monkeypatch.setattr(module, name, wrong(getattr(module, name)))
    with pytest.raises(CheckFailed, match=f"logits differ from torch's.*; the first part that differs is {part}$"):
        export_onnx(tiny_checkpoint("bert"), tmp_path, **TASK)
    assert not list(tmp_path.glob("*.onnx"))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_task_of_single_texts_needs_no_segments(
    family: str, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    """The segment row is added to the positions: no input, no lookup, and the same logits as with segment 0 everywhere."""
    info = export_onnx(tiny_checkpoint(family), tmp_path, **TASK, pairs=False)
    assert max(info["parity_max_abs_error"].values()) < 1e-5
    for name in ("model.onnx", "model_unpadded.onnx"):
        graph = onnx.load(tmp_path / name).graph
        assert [value.name for value in graph.input] == ["input_ids", "attention_mask"]
        assert not [node for node in graph.node if "token_type" in node.name]
    export_onnx(tiny_checkpoint(family), tmp_path / "pairs", **TASK)
    ids = np.arange(5, 29).reshape(2, 12)
    full = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    logits = []
    for path in (tmp_path / "model.onnx", tmp_path / "pairs/model.onnx"):
        session = open_session(path)
        logits.append(session.run(["logits"], {v.name: full[v.name] for v in session.get_inputs()})[0])
    np.testing.assert_allclose(*logits, atol=1e-6)
