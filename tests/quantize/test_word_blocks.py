"""Word embeddings in 4 bits: their precision, which files have them, and the graph against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from default_suite import covering, slow
from onnx import ModelProto, TensorProto, helper, numpy_helper
from small_graphs import logits as logits_of_graph
from small_graphs import model_of

from compress.catalog import load_recipe
from compress.errors import CompressError
from compress.quantize import quantize_onnx, weights
from compress.quantize.int8_graph import to_int8_graph
from compress.quantize.node_selection import QuantizationPlan, packed_look_ups, word_look_ups
from compress.quantize.word_blocks import Blocks, block_of, quantize_blocks, row_bytes
from compress.runtime.folder import unpadded_beside
from compress.sessions.opening import open_session
from compress.spec.quantization import Quantize

FAMILIES = ("bert", "distilbert", "roberta", "electra", "albert", "mpnet", "ernie")
GENERATOR = np.random.default_rng(3)
IDS = GENERATOR.integers(5, 120, (16, 12))


@pytest.fixture(autouse=True)
def long_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toy tables have 120 words, and 24 or 26 positions."""
    monkeypatch.setattr(weights, "LONG", 100)


def restored(blocks: Blocks) -> np.ndarray:
    """Return float32 [row, size], decoded from the stored blocks."""
    packed, codes = blocks.packed.astype(np.int32), blocks.codes.astype(np.float32)
    upper = packed // 16
    levels = np.concatenate([upper, packed - 16 * upper - 8], axis=2).astype(np.float32)
    return (levels * (codes * np.abs(codes) * blocks.unit)).reshape(len(packed), -1)


def table(rows: int = 400, size: int = 64) -> np.ndarray:
    loudness = GENERATOR.uniform(0.5, 2, (rows, 1))
    return (0.05 * loudness * GENERATOR.normal(size=(rows, size))).astype(np.float32)


def looked_up(values: np.ndarray) -> ModelProto:
    nodes = [helper.make_node("Gather", ["t", "input_ids"], ["logits"], name="words/Gather")]
    return model_of(nodes, {"t": values}, values.shape[1])


PLAN = QuantizationPlan(int8=(), weight_only=(), kept=(), tables=("words/Gather",))


def rows_of(model: ModelProto, ids: np.ndarray, folder: Path) -> np.ndarray:
    onnx.checker.check_model(model, full_check=True)
    return logits_of_graph(model, folder, [{"input_ids": ids, "attention_mask": np.ones_like(ids)}])


@pytest.mark.parametrize("size", [64, 26, 24, 8])
def test_the_graph_computes_what_numpy_does(size: int, tmp_path: Path) -> None:
    """Exactly."""
    values = table(size=size)
    int8_model = to_int8_graph(looked_up(values), PLAN, {}, word_bits=4)
    ids = GENERATOR.integers(0, 400, (3, 50))
    np.testing.assert_array_equal(rows_of(int8_model, ids, tmp_path), restored(quantize_blocks(values))[ids])
    assert rows_of(int8_model, ids[:, :0], tmp_path).shape == (3, 0, size)


def test_every_byte_stands_for_its_two_values(tmp_path: Path) -> None:
    values = np.concatenate([np.arange(-8, 8).repeat(16)[:, None], np.tile(np.arange(-8, 8), 16)[:, None]], 1)
    values = np.repeat(values, 4, axis=1).astype(np.float32)  # [256, 8]: a block of two halves
    values[:, 1] = values[:, 6] = -8  # so that the scale is 1
    int4_blocks = quantize_blocks(values)
    assert len(np.unique(int4_blocks.packed[:, 0, 0])) == 256
    int8_model = to_int8_graph(looked_up(values), PLAN, {}, word_bits=4)
    np.testing.assert_allclose(rows_of(int8_model, np.arange(256)[None], tmp_path)[0], values, rtol=1e-6)


def test_a_block_has_the_better_of_its_scales_on_the_side_of_its_farthest_value() -> None:
    values = table()
    int4_blocks = quantize_blocks(values)
    blocks = values.reshape(400, 2, 32)
    farthest = np.take_along_axis(blocks, np.abs(blocks).argmax(2, keepdims=True), 2)
    assert (np.sign(int4_blocks.codes) == -np.sign(farthest)).all()
    error = np.square(restored(int4_blocks) - values).sum()
    step = np.abs(blocks).max(2, keepdims=True) / 7
    plain = np.square(np.rint(blocks / step) * step - blocks).sum()
    assert error < 0.8 * plain  # against the plain rounding to ±7 with exact scales
    one = np.abs(farthest) / 8 * -np.sign(farthest)
    reaching = np.square(np.clip(np.rint(blocks / one), -8, 7) * one - blocks).sum()
    assert error < 0.95 * reaching  # against the scale that clips nothing
    signal = 10 * np.log10(np.square(values).sum() / error)
    assert 20.5 < signal < 23  # dB; 16 evenly spaced values for the whole normal distribution reach 19.4


def test_a_table_of_zeros_is_zeros_and_no_row_depends_on_others() -> None:
    assert (restored(quantize_blocks(np.zeros((120, 16), np.float32))) == 0).all()
    values = table()
    values[3] *= 20  # the largest, which determines the unit
    some = np.concatenate([values[:4], values[200:]])
    np.testing.assert_array_equal(
        restored(quantize_blocks(some)), restored(quantize_blocks(values))[[*range(4), *range(200, 400)]]
    )


@pytest.mark.parametrize(
    ("width", "block"), [(384, 32), (312, 26), (300, 30), (128, 32), (50, 10), (254, None), (33, None)]
)
def test_blocks_divide_rows(width: int, block: int | None) -> None:
    assert block_of(width) == block
    if block is None:
        with pytest.raises(
            CompressError, match=rf"^quantize\.word_bits: 4 bits need .* found {width} values a row; leave"
        ):
            quantize_blocks(table(size=width))
    else:
        int4_blocks = quantize_blocks(table(size=width))
        assert row_bytes(400, width, bits=4) * 400 == int4_blocks.packed.nbytes + int4_blocks.codes.nbytes
    assert row_bytes(400, width) == width + 1
    assert row_bytes(99, width, bits=4) == row_bytes(99, width) == width + 4


def logits(path: Path) -> np.ndarray:
    session = open_session(path, threads=1)
    feed = {"input_ids": IDS, "attention_mask": np.ones_like(IDS), "token_type_ids": np.zeros_like(IDS)}
    return np.asarray(session.run(None, {value.name: feed[value.name] for value in session.get_inputs()})[0])


def feeds() -> list[dict[str, np.ndarray]]:
    named = {"input_ids": IDS, "attention_mask": np.ones_like(IDS), "token_type_ids": np.zeros_like(IDS)}
    return [named] * 4


@pytest.mark.parametrize(
    ("family", "graph", "int8_format"),
    covering(FAMILIES, [("fast", "static"), ("fast", "qdq"), ("plain", "dynamic")], ["mpnet"]),
)
def test_every_family_s_words_have_4_bits(
    family: str, graph: str, int8_format: str, tiny_onnx: Callable[..., Path], tmp_path: Path
) -> None:
    source = tiny_onnx(family, graph)
    method = "dynamic" if int8_format == "dynamic" else "static"
    by_bits = {}
    for bits in (8, 4):
        spec = Quantize(method=method, word_bits=bits)
        info = quantize_onnx(source, tmp_path, spec, int8_format=int8_format, feeds=feeds(), name=f"{bits}.onnx")
        by_bits[bits] = logits(tmp_path / f"{bits}.onnx")
        assert (info["int8_gathers"], info["int4_gathers"]) == ((2, 0) if bits == 8 else (1, 1))
    model = onnx.load(tmp_path / "4.onnx")
    (name,) = packed_look_ups(model)
    table_name = next(node.input[0] for node in model.graph.node if node.name == name)
    assert "word_embeddings" in table_name
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    assert stored[table_name].data_type == TensorProto.INT8
    assert not any(
        "word_embeddings" in each and t.data_type == TensorProto.FLOAT and t.dims for each, t in stored.items()
    )
    full = logits(source)
    spread = (full - full.mean(0)).std()
    assert np.abs(by_bits[4] - by_bits[8]).max() > 0
    assert np.abs(by_bits[4] - full).mean() < 0.5 * spread
    if int8_format == "static":
        beside = onnx.load(unpadded_beside(tmp_path / "4.onnx"), load_external_data=False)
        assert len(packed_look_ups(beside)) == 1  # the same table: the two forms are compared when they are written


def test_a_short_table_and_positions_keep_8_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = looked_up(table(120))
    assert word_look_ups(model, PLAN) == ["words/Gather"]
    monkeypatch.setattr(weights, "LONG", 121)
    assert word_look_ups(model, PLAN) == []
    assert packed_look_ups(to_int8_graph(model, PLAN, {}, word_bits=4)) == []


@pytest.mark.parametrize("family", ["bert", *slow("distilbert", "roberta")])
def test_positions_keep_8_bits_though_they_are_more_than_the_words(family: str, tiny_onnx: Callable[..., Path]) -> None:
    model = onnx.load(tiny_onnx(family, "plain"))
    named = {node.name: node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    (words,) = (name for name, table in named.items() if "word_embeddings" in table)
    (positions,) = (name for name, table in named.items() if "position_embeddings" in table)
    plan = QuantizationPlan(int8=(), weight_only=(), kept=(), tables=(words, positions))
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    longer = numpy_helper.from_array(np.zeros((400, 8), np.float32), named[positions])
    stored[named[positions]].CopyFrom(longer)
    assert word_look_ups(model, plan) == [words]
    assert word_look_ups(model, replace(plan, tables=(positions,))) == []


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"embeddings": False},
            "word_bits: `embeddings: false` leaves the word embeddings in fp32; leave one of the two out",
        ),
        ({"word_bits": 6}, "4 or 8"),
    ],
)
def test_what_contradicts_itself_is_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Quantize(**{"word_bits": 4, **spec})


def test_training_for_int8_refuses_4_bits(tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(
        CompressError, match=r"^quantize\.word_bits: the `quantize_aware` stage trains words of 8 bits; leave"
    ):
        quantize_onnx(tiny_onnx("bert", "fast"), tmp_path, Quantize(method="qat", word_bits=4))


def test_other_bits_are_refused_with_those_there_are(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\ntitle: Mine\nstages:\n  - finetune:\n  - export:\n  - quantize: {word_bits: 3}\n")
    with pytest.raises(CompressError, match=r"word_bits: expected one of `4`, `8`, found the number 3"):
        load_recipe(path)
