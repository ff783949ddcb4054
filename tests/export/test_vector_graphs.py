"""Graphs of sentence encoders, fast, unpadded and plain: against torch, and which parts become int8."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from default_suite import covering, slow
from family_teachers import LAYERS, POSITIONS
from plain_teachers import LAYERS as PLAIN_LAYERS
from sentence_encoders import encoder

from compress.errors import CheckFailed
from compress.evaluate import predict_onnx
from compress.export import export_onnx
from compress.export.fast import build_fast
from compress.export.fast.heads import GRAPH_HEADS
from compress.export.forms import FORMS
from compress.export.tracing import describe, example
from compress.graphs.matmuls import head_matmuls, matmuls, output_matmuls
from compress.graphs.model_files import write_model
from compress.models.fake_quant.classifier import FakeQuant, fake_quantized
from compress.models.families import FAMILIES
from compress.models.features.named import compute_features
from compress.models.features.predict import predict_logits
from compress.quantize import quantize_onnx
from compress.quantize.qat_params import Trained, quant_spec_of
from compress.quantize.ranges import Range, calibrate
from compress.quantize.simulation import simulate
from compress.sessions.opening import open_session
from compress.sessions.outputs import wanted_outputs
from compress.spec.quantization import Quantize
from compress.tasks.batches.text_vectors import EncodedTexts

FAST = [name for name, family in FAMILIES.items() if family.fast_graph and not family.layerless]
TASK: dict[str, Any] = {"opset": 20, "task_name": "toy", "labels": (), "kind": "embedding", "pairs": False}
SHAPES = [(1, 1), (1, 2), (2, 7), (3, 19), (5, POSITIONS)]
LENGTHS = (14, 9, 3, 1, 14, 7)
CLOSE = 1e-6  # fp32 sums in another order, vectors of length 1


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function: (family, pooling) -> folder of a tiny checkpoint."""
    folders: dict[tuple[str, str], Path] = {}

    def make(family: str, pooling: str = "mean") -> Path:
        if (family, pooling) not in folders:
            folders[family, pooling] = tmp_path_factory.mktemp(f"encoder-{family}")
            encoder(family, pooling).save_pretrained(folders[family, pooling])
        return folders[family, pooling]

    return make


@pytest.fixture(scope="session")
def graph(checkpoint: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function: (family, pooling, form, opset) -> model.onnx."""
    paths: dict[tuple[str, str, str, int], Path] = {}

    def make(family: str, pooling: str = "mean", form: str = "fast", opset: int = 20) -> Path:
        place = family, pooling, form, opset
        if place not in paths:
            folder = tmp_path_factory.mktemp("graph")
            export_onnx(checkpoint(family, pooling), folder, graph=form, **{**TASK, "opset": opset})
            paths[place] = folder / "model.onnx"
        return paths[place]

    return make


def vectors(path: Path, feed: dict[str, np.ndarray], output: str = "sentence_embedding") -> np.ndarray:
    session = open_session(path, threads=1)
    return np.asarray(session.run([output], {value.name: feed[value.name] for value in session.get_inputs()})[0])


def expected(model: Any, feed: dict[str, np.ndarray]) -> np.ndarray:
    batch = {"token_type_ids": np.zeros_like(feed["input_ids"]), **feed}
    with torch.no_grad():
        logits = compute_features(model, {n: torch.from_numpy(v) for n, v in batch.items()}, ("logits",))["logits"]
    return logits.numpy()


def texts() -> dict[str, np.ndarray]:
    mask = (np.arange(14) < np.array(LENGTHS)[:, None]).astype(np.int64)
    ids = np.random.default_rng(0).integers(7, 80, mask.shape)
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


GRAPHS = [(pooling, opset) for pooling in ("mean", "cls") for opset in (20, 23)]


@pytest.mark.parametrize(("family", "pooling", "opset"), covering(FAST, GRAPHS, ["mpnet"]))
def test_every_family_agrees_with_torch(family: str, pooling: str, opset: int, graph: Callable[..., Path]) -> None:
    model = encoder(family, pooling)
    traced = replace(describe(model, "embedding"), inputs=("input_ids", "attention_mask"))
    for name in ("model.onnx", "model_unpadded.onnx"):
        path = graph(family, pooling, "fast", opset).with_name(name)
        for batch, length in SHAPES:
            feed = {key: value.numpy() for key, value in example(traced, batch, length).items()}
            embeddings = vectors(path, feed)
            assert embeddings.shape == (batch, model.config.hidden_size)
            np.testing.assert_allclose(embeddings, expected(model, feed), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("form", ["fast", *slow("plain")])
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_other_tools_get_the_states_that_they_pool_first(pooling: str, form: str, graph: Callable[..., Path]) -> None:
    """sentence-transformers, FastEmbed and transformers.js read `last_hidden_state`, or the first output."""
    path, feed = graph("bert", pooling, form), texts()
    session = open_session(path)
    assert [output.name for output in session.get_outputs()] == ["last_hidden_state", "sentence_embedding"]
    assert wanted_outputs([output.name for output in session.get_outputs()]) == ["sentence_embedding"]
    states, mask = vectors(path, feed, "last_hidden_state"), feed["attention_mask"][..., None]
    assert states.shape == (len(LENGTHS), 14 if pooling == "mean" else 1, encoder("bert").config.hidden_size)
    pooled = (states * mask).sum(1) / mask.sum(1) if pooling == "mean" else states[:, 0]
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors(path, feed), pooled, rtol=0, atol=CLOSE)
    if form == "fast":
        (only,) = onnx.load(path.with_name("model_unpadded.onnx"), load_external_data=False).graph.output
        assert only.name == "sentence_embedding"


PLAIN = ("bert", "albert", "modernbert", "distilbert", "roberta", "electra", "mpnet", "ernie")


@pytest.mark.slow  # torch's exporter
@pytest.mark.parametrize("family", PLAIN)
def test_the_plain_graph_agrees_with_torch(family: str, checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    info = export_onnx(checkpoint(family), tmp_path, graph="plain", **TASK)
    assert len(info["parity_max_abs_error"]) == 4
    assert max(info["parity_max_abs_error"].values()) < CLOSE
    int8 = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    assert int8["fp32_matmuls"] == 0 and int8["int8_matmuls"] >= 4 * LAYERS


@pytest.mark.parametrize("family", FORMS)
def test_a_form_computes_what_the_model_does(family: str) -> None:
    model = encoder(family)
    form, traced = FORMS[family](model).eval(), describe(model, "embedding")
    for batch, length in SHAPES:
        inputs = example(traced, batch, length)
        with torch.no_grad():
            states, embeddings = form(**inputs)
            goal = compute_features(model, inputs, ("logits",))["logits"]
        assert states.shape == (batch, length, model.config.hidden_size)
        torch.testing.assert_close(embeddings, goal, rtol=0, atol=CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("family", FORMS)
def test_a_form_s_graph_is_exported_and_becomes_int8(
    family: str, checkpoint: Callable[..., Path], tmp_path: Path
) -> None:
    info = export_onnx(checkpoint(family), tmp_path, graph="plain", **TASK)
    assert max(info["parity_max_abs_error"].values()) < 2e-6  # as a classifier's
    int8 = quantize_onnx(tmp_path / "model.onnx", tmp_path, Quantize(method="dynamic"))
    assert int8["int8_matmuls"] == {"deberta-v2": 6, "xlnet": 7}[family] * PLAIN_LAYERS
    assert int8["fp32_matmuls"] == 0


def test_no_matmul_is_a_classifier_s(graph: Callable[..., Path]) -> None:
    model = onnx.load(graph("bert"))
    matmul_names = matmuls(model.graph)
    assert not matmul_names.stacked and len(matmul_names.fp32) == 6 * LAYERS
    assert head_matmuls(model.graph) == output_matmuls(model.graph) == ()


@pytest.mark.parametrize("part", [f"layer {LAYERS}", "head"])
@pytest.mark.parametrize("form", ["model.onnx", "model_unpadded.onnx"])
def test_a_wrong_graph_is_not_kept_and_the_message_names_the_part(
    part: str, form: str, checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, unpadded = GRAPH_HEADS["embedding"], form == "model_unpadded.onnx"

    def wrong(right: Callable[..., str], kind: str) -> Callable[..., str]:
        def write(*parts: Any) -> str:
            output, writer = right(*parts), parts[0]
            tokens = next(each for each in parts if type(each).__name__ in ("Padded", "Unpadded"))
            if unpadded != (type(tokens).__name__ == "Unpadded"):
                return output
            return writer.op(kind, [output, writer.weight("wrong", np.array(1.01, np.float32))], "wrong")

        return write

    field = "logits" if part == "head" else "last_attention"
    bad = wrong(getattr(head, field), "Mul" if part == "head" else "Pow")
    monkeypatch.setitem(GRAPH_HEADS, "embedding", replace(head, **{field: bad}))
    with pytest.raises(
        CheckFailed, match=rf"{form}: logits differ from torch's.*; the first part that differs is {part}$"
    ):
        export_onnx(checkpoint("bert"), tmp_path, graph="fast", **TASK)
    assert not list(tmp_path.glob("*.onnx"))


@pytest.mark.parametrize(
    ("family", "int8_format"), covering(["bert", "distilbert", "albert", "mpnet"], ["static", "dynamic"], ["mpnet"])
)
def test_all_matmuls_become_int8(family: str, int8_format: str, graph: Callable[..., Path], tmp_path: Path) -> None:
    source, feed = graph(family), texts()
    spec = Quantize(
        method="dynamic", reduce_range=True
    )  # 7-bit weights: ALBERT's of 8 bits saturate on CPUs without VNNI
    info = quantize_onnx(source, tmp_path, spec, int8_format=int8_format, feeds=[feed])
    projection = family == "albert"
    assert (info["int8_matmuls"], info["weight_only_matmuls"]) == (6 * LAYERS + projection, 0)
    assert info["fp32_matmuls"] == 0
    padded, unpadded = (tmp_path / f"model_quantized{form}.onnx" for form in ("", "_unpadded"))
    if int8_format == "dynamic":  # dynamic ranges agree only without padding, which would change them
        feed |= {"attention_mask": np.ones_like(feed["attention_mask"]), "input_ids": feed["input_ids"] + 5}
    int8, other, exact = (vectors(path, feed) for path in (padded, unpadded, source))
    np.testing.assert_allclose(int8, other, atol=2e-3)
    cosines = (int8 * exact).sum(1)
    assert 0.98 < cosines.min() < 1


def test_the_first_token_s_matmuls_become_int8_too(graph: Callable[..., Path], tmp_path: Path) -> None:
    info = quantize_onnx(graph("bert", "cls"), tmp_path, Quantize(method="dynamic"))
    assert info["int8_matmuls"] + info["weight_only_matmuls"] == 6 * LAYERS and info["fp32_matmuls"] == 0
    int8, exact = (vectors(path, texts()) for path in (tmp_path / "model_quantized.onnx", graph("bert", "cls")))
    assert (int8 * exact).sum(1).min() > 0.98


def test_a_simulated_file_gives_the_vectors(graph: Callable[..., Path], tmp_path: Path) -> None:
    spec = Quantize(method="dynamic", reduce_range=True)  # 7 bits: no saturation on any CPU
    quantize_onnx(graph("bert"), tmp_path, spec, int8_format="static", feeds=[texts()])
    path = tmp_path / "model_quantized.onnx"
    (embeddings,) = simulate(path, [texts()], saturating=False)
    assert np.median(np.abs(embeddings - vectors(path, texts()))) < 1e-4  # rarely a value rounds the other way


MIX = [0.2, *[0.8 / LAYERS] * LAYERS]


@pytest.mark.parametrize(("pooling", "layers"), [("mean", 1), ("cls", 1), ("cls", 2), ("cls", MIX)])
def test_a_model_in_training_for_int8_computes_what_its_file_does(
    pooling: str, layers: int | list[float], tmp_path: Path
) -> None:
    spec = Quantize(method="qat", reduce_range=True)  # 7 bits, as above
    model, feed = deepcopy(encoder("bert", pooling)), texts()
    model.config.sentence_layers = layers
    written = build_fast(model, kind="embedding", pairs=False)
    assert written is not None
    write_model(written, tmp_path / "model.onnx")
    form, _ = quant_spec_of(written, spec)
    sources = tuple(dict.fromkeys(use.source for use in form.uses if use.source is not None))
    spans = calibrate(written, sources, [feed], method="minmax", percentile=100)
    quant = FakeQuant(form, {name: (span.low, span.high) for name, span in spans.items()}, ranges="learned")
    with fake_quantized(model, quant):
        embeddings = expected(model, feed)
    ranges = {name: Range(*ends) for name, ends in quant.input_ranges().items()}
    info = quantize_onnx(tmp_path / "model.onnx", tmp_path, spec, trained=Trained(ranges, {}, {}))
    assert info["int8_matmuls"] == len(ranges)
    last = f"layer.{LAYERS - 1}."
    assert all(use.first == (pooling == "cls" and last in use.name) for use in form.uses)
    # Both round alike; rarely a value that fp32 sums in another order falls half-way and rounds the other way.
    assert np.median(np.abs(embeddings - vectors(tmp_path / "model_quantized.onnx", feed))) < 1e-4


def test_a_split_s_outputs_are_torch_s(graph: Callable[..., Path]) -> None:
    rng = np.random.default_rng(0)
    rows = [rng.integers(7, 80, size).astype(np.int32) for size in (5, 9, 3, 12, 7, 4)]
    encoded = EncodedTexts(rows, [np.zeros(len(row), np.int8) for row in rows], np.arange(3, dtype=np.float32))
    outputs, goal = predict_onnx(graph("bert"), encoded, 0), predict_logits(encoder("bert"), encoded, 0)
    assert outputs.shape == (3, 1 + 2 * encoder("bert").config.hidden_size)
    np.testing.assert_allclose(outputs, goal, rtol=0, atol=2 * CLOSE)  # sums of products of two vectors
