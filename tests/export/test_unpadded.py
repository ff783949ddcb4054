"""The unpadded form of the fast graph computes what the padded one does, without the padding, sharing its weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering
from transformers import AlbertConfig, AutoModelForSequenceClassification, BertConfig, RobertaConfig

from compress.errors import CheckFailed, CompressError
from compress.export import export_onnx, fast
from compress.export.fast import padding
from compress.export.tracing import describe, example
from compress.graphs.matmuls import matmuls
from compress.graphs.model_files import write_model
from compress.graphs.shared_weights import share_weights
from compress.quantize import params, quantize_onnx
from compress.quantize.ranges import Range
from compress.sessions.checks import WEIGHTS
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
LABELS = ("no", "maybe", "yes")
TASK: dict[str, Any] = {"opset": 20, "task_name": "toy", "labels": LABELS, "kind": "classification", "graph": "fast"}
SHAPES = [(1, 1), (1, 24), (2, 2), (3, 19), (8, 24)]
SMALL: dict[str, Any] = {"vocab_size": 120, "max_position_embeddings": 24, "num_labels": 3, "intermediate_size": 64}


def sized(form: Any, **sizes: Any) -> Any:
    return form(**SMALL | sizes)


def logits(path: Path, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    session = open_session(path, threads=1)
    return np.asarray(session.run(["logits"], {v.name: inputs[v.name].numpy() for v in session.get_inputs()})[0])


@pytest.mark.parametrize(("family", "opset"), covering(FAMILIES, [20, 23], ["mpnet"]))
def test_every_family_agrees_with_torch(
    family: str, opset: int, tiny_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    info = export_onnx(tiny_checkpoint(family), tmp_path, **{**TASK, "opset": opset})
    assert max(info["unpadded_parity_max_abs_error"].values()) < 1e-5
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint(family)).eval()
    for batch, length in SHAPES:
        inputs = example(describe(model), batch, length)
        with torch.inference_mode():
            expected = model(**inputs).logits.numpy()
        np.testing.assert_allclose(logits(tmp_path / "model_unpadded.onnx", inputs), expected, atol=1e-5)


@pytest.mark.parametrize(
    "config",
    [
        sized(BertConfig, hidden_size=26 * 2, num_attention_heads=2, num_hidden_layers=3),
        sized(BertConfig, hidden_size=32, num_attention_heads=2, num_hidden_layers=1),
        sized(RobertaConfig, hidden_size=32, num_attention_heads=4, num_hidden_layers=2, max_position_embeddings=26),
        sized(AlbertConfig, hidden_size=32, embedding_size=16, num_attention_heads=2, num_hidden_layers=3),
    ],
    ids=["head size 26", "one layer", "roberta", "albert"],
)  # fmt: skip
def test_sizes(config: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    graph = fast.build_fast(model, unpadded=True)
    assert graph is not None
    write_model(graph, tmp_path / "m.onnx")
    inputs = example(describe(model), 5, 17)
    with torch.inference_mode():
        expected = model(**inputs).logits.numpy()
    np.testing.assert_allclose(logits(tmp_path / "m.onnx", inputs), expected, atol=1e-5)


def test_the_products_have_a_row_for_each_token_and_none_for_padding(
    tiny_checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint("bert")).eval()
    graph = fast.build_fast(model, unpadded=True)
    assert graph is not None
    inputs = example(describe(model), 3, 12)
    tokens = int(inputs["attention_mask"].sum())
    assert tokens < 3 * 12
    *layers, last = range(model.config.num_hidden_layers)
    stored = {tensor.name for tensor in graph.graph.initializer}
    wide = [
        n.output[0]
        for n in graph.graph.node
        for layer in layers
        if f"layer.{layer}." in n.name and n.op_type == "MatMul" and n.input[1] in stored
    ]
    assert len(wide) == 6 * len(layers)
    first = [n.output[0] for n in graph.graph.node if f"layer.{last}.intermediate" in n.name and n.op_type == "MatMul"]
    graph.graph.output.extend(onnx.helper.make_tensor_value_info(name, 1, None) for name in [*wide, *first])
    write_model(graph, tmp_path / "m.onnx")
    session = open_session(tmp_path / "m.onnx")
    products = session.run([*wide, *first], {v.name: inputs[v.name].numpy() for v in session.get_inputs()})
    assert [np.asarray(array).shape[:2] for array in products] == [(1, tokens)] * len(wide) + [(3, 1)]


def test_the_axis_of_a_cumulative_sum_is_a_scalar(tiny_onnx: Callable[..., Path]) -> None:
    """ONNX requires a scalar, but its checker accepts a vector of one element."""
    graph = onnx.load(tiny_onnx("bert", "fast").with_name("model_unpadded.onnx"), load_external_data=False).graph
    stored = {tensor.name: tensor for tensor in graph.initializer}
    axes = [stored[node.input[1]] for node in graph.node if node.op_type == "CumSum"]
    assert [list(axis.dims) for axis in axes] == [[]]


@pytest.mark.parametrize(
    ("family", "int8_format", "opset"),
    covering(FAMILIES, [("static", 20), ("static", 23), ("dynamic", 20), ("dynamic", 23)], ["mpnet"]),
)
def test_int8_is_that_of_the_padded_form(
    family: str, int8_format: str, opset: int, tiny_onnx: Callable[..., Path], tmp_path: Path
) -> None:
    """Fixed ranges give the same on any batch; dynamic ones only without padding, which would change them."""
    source = tiny_onnx(family, "fast", opset)
    rng = np.random.default_rng(0)
    ids, mask = (
        rng.integers(5, 110, (6, 14)),
        (np.arange(14) < np.array([14, 9, 3, 1, 14, 7])[:, None]).astype(np.int64),
    )
    feed = {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    quantize_onnx(source, tmp_path, Quantize(method="dynamic"), int8_format=int8_format, feeds=[feed])
    padded, unpadded = (tmp_path / f"model_quantized{form}.onnx" for form in ("", "_unpadded"))
    model = onnx.load(unpadded)
    assert len(matmuls(model.graph).int8) == len(matmuls(onnx.load(padded).graph).int8) > 0
    if int8_format == "dynamic":
        feed |= {"attention_mask": np.ones_like(mask), "input_ids": ids}
    tensors = {name: torch.from_numpy(value) for name, value in feed.items()}
    np.testing.assert_allclose(logits(unpadded, tensors), logits(padded, tensors), atol=2e-3)


def test_weights_stand_once(tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    source = tiny_onnx("bert", "fast")
    quantize_onnx(source, tmp_path, Quantize(method="dynamic"))
    for path in (source, tmp_path / "model_quantized.onnx"):
        unpadded = onnx.load(path.with_name(f"{path.stem}_unpadded.onnx"), load_external_data=False)
        outside = {t.name: t for t in unpadded.graph.initializer if t.data_location == onnx.TensorProto.EXTERNAL}
        inside = [t for t in unpadded.graph.initializer if t.name not in outside]
        assert {e.value for t in outside.values() for e in t.external_data if e.key == "location"} == {path.name}
        assert max(onnx.numpy_helper.to_array(t).nbytes for t in inside) < 256
        entry = {e.key: e.value for e in unpadded.metadata_props}
        import hashlib

        assert entry[WEIGHTS] == hashlib.sha256(path.read_bytes()).hexdigest()
        own = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
        whole = onnx.load(path.with_name(f"{path.stem}_unpadded.onnx"))
        for tensor in whole.graph.initializer:
            if tensor.name in own:
                np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), own[tensor.name])


def test_a_weight_that_the_other_file_lacks_is_refused(tiny_onnx: Callable[..., Path]) -> None:
    model = onnx.load(tiny_onnx("bert", "fast"))
    changed = next(t for t in model.graph.initializer if len(t.raw_data) >= 256)
    changed.raw_data = bytes(reversed(changed.raw_data))
    with pytest.raises(CheckFailed, match=f"expected the weight {changed.name} in it"):
        share_weights(model, tiny_onnx("bert", "fast"))


def test_a_wrong_unpadded_graph_is_not_kept(
    tiny_checkpoint: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault moves tokens to wrong places; neither form is written."""
    spread = padding.Unpadded.for_attention

    def shifted(self: padding.Unpadded, states: str) -> str:
        self._tokens_for_attention = self._graph.op(
            "Mul", [self._tokens_for_attention, self._graph.integers(0)], "wrong"
        )
        return spread(self, states)

    monkeypatch.setattr(padding.Unpadded, "for_attention", shifted)
    with pytest.raises(
        CheckFailed, match=r"model_unpadded\.onnx: logits differ from torch's .*first part that differs is layer 1"
    ):
        export_onnx(tiny_checkpoint("bert"), tmp_path, **TASK)
    assert not list(tmp_path.glob("*.onnx"))


def test_the_plain_graph_and_the_portable_form_have_none(tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    quantize_onnx(tiny_onnx("bert"), tmp_path, Quantize(method="dynamic"))
    ids = np.full((2, 8), 7)
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, Quantize(method="dynamic"), int8_format="qdq", feeds=[feed])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model_qdq.onnx", "model_quantized.onnx"]
    assert not tiny_onnx("bert").with_name("model_unpadded.onnx").exists()


def test_a_wrong_range_is_found_and_neither_form_is_kept(
    tiny_onnx: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unpadded matmuls use the padded form's ranges; the planted ones are 20 times too narrow."""
    ids = np.arange(5, 45).reshape(4, 10)
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    real = params.to_int8_graph

    def swapped(model: Any, plan: Any, int8_formats: dict[str, str], *, ranges: dict[str, Range], **how: Any) -> Any:
        if any("unpad/" in node.name for node in model.graph.node):
            ranges = {name: Range(span.low / 20, span.high / 20) for name, span in ranges.items()}
        return real(model, plan, int8_formats, ranges=ranges, **how)

    monkeypatch.setattr(params, "to_int8_graph", swapped)
    with pytest.raises(CheckFailed, match=r"model_quantized_unpadded\.onnx: logits differ by .* neither is kept"):
        quantize_onnx(
            tiny_onnx("bert", "fast"), tmp_path, Quantize(method="dynamic"), int8_format="static", feeds=[feed]
        )
    assert not list(tmp_path.iterdir())


def test_one_that_is_left_over_is_removed_or_refused(
    tiny_checkpoint: Callable[[str], Path],
    tiny_onnx: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plain export after a fast one removes it; an unpadded form of another file is refused."""
    model = onnx.load(tiny_onnx("bert"))
    monkeypatch.setattr("compress.export.trace", lambda *_: model)
    export_onnx(tiny_checkpoint("bert"), tmp_path, **TASK)
    quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    assert len(list(tmp_path.glob("*_unpadded.onnx"))) == 2
    plain: dict[str, Any] = {**TASK, "graph": "plain"}
    export_onnx(tiny_checkpoint("bert"), tmp_path, **plain)
    quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    assert not list(tmp_path.glob("*_unpadded.onnx"))
    (tmp_path / "model_unpadded.onnx").write_bytes(
        tiny_onnx("bert", "fast").with_name("model_unpadded.onnx").read_bytes()
    )
    with pytest.raises(CompressError, match=r"model_unpadded\.onnx: made for another model\.onnx"):
        quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
