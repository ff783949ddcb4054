"""Each calibration method against its formula, written out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_graphs import model_of

from compress.quantize.ranges import RANGES, Range, Seen, calibrate
from compress.quantize.sampling import Sample

generator = np.random.default_rng(3)
BATCHES = [generator.normal(size=(size, 8)).astype(np.float32) * scale for size, scale in ((40, 1), (70, 3), (20, 0.5))]


def seen(batches: list[np.ndarray]) -> Seen:
    statistics = Seen()
    for batch in batches:
        statistics.add_extremes(batch)
    for batch in batches:
        statistics.add_counts(batch)
    return statistics


def test_minmax_is_all_that_was_seen() -> None:
    values = np.concatenate(BATCHES)
    assert RANGES["minmax"](seen(BATCHES), 99.9) == Range(float(values.min()), float(values.max()))


def test_rounded_values_are_the_levels_nearest() -> None:
    span = Range(-1, 3)
    values = np.array([-5, -1, -0.004, 0, 0.007, 0.009, 2.99, 9], np.float32)
    step = 4 / 255
    levels = np.clip(np.rint(values / step), -64, 191)  # zero point 64
    assert span.rounded(values) == pytest.approx(levels * step, abs=1e-6)
    assert (span.rounded(span.rounded(values)) == span.rounded(values)).all()


@pytest.mark.parametrize("percentile", [99.01, 99.9, 99.999, 100])
def test_the_ends_of_the_values_tell_a_percentile_as_all_of_them_do(percentile: float) -> None:
    draws = np.random.default_rng(5)
    fine = [(draws.standard_t(2, (size, 6)) * 3).astype(np.float32) for size in (7, 900, 1, 400)]
    for batches in (fine, [np.round(batch) for batch in fine]):  # also values that are often equal
        count = int((100 - percentile) / 200 * 6 * 1308) + 2
        ends = Seen()
        for batch in batches:
            ends.add_extremes(batch)
            ends.add_ends(batch, count)
        assert ends.ends.size == 2 * count < ends.size == 6 * 1308
        ends.count_ends(count)
        assert RANGES["percentile"](ends, percentile) == RANGES["percentile"](seen(batches), percentile)


@pytest.mark.parametrize(("low", "high"), [(100, 100.3), (1, 1.005), (0, 9e-41)])
def test_values_that_hardly_differ_for_their_size_have_a_range(low: float, high: float) -> None:
    values = np.linspace(low, high, 500).astype(np.float32)
    counts, ends = seen([values]), Seen()
    ends.add_extremes(values)
    ends.add_ends(values, 20)
    ends.count_ends(20)
    for each in (counts, ends):
        span = RANGES["percentile"](each, 99.0)
        assert float(values[0]) <= span.low <= span.high <= float(values[-1])


def test_the_ends_are_the_least_and_the_largest_however_many_values_come_at_once() -> None:
    values = np.array([5, 1, 9, 3, 2, 7, 0, 8, 4, 6], np.float32)
    for size in (1, 2, 3, 4, 6, 10):  # 4: exactly as many as are kept
        ends = Seen()
        for start in range(0, len(values), size):
            ends.add_ends(values[start : start + size], 2)
        assert sorted(ends.ends) == [0, 1, 8, 9] and set(ends.ends[:2]) == {0, 1}


@pytest.mark.parametrize(("method", "passes"), [("percentile", 1), ("minmax", 1)])
def test_texts_are_read_no_more_often_than_a_range_needs(
    method: str, passes: int, tiny_onnx: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    own = Sample.batches
    monkeypatch.setattr(Sample, "batches", lambda sample: (read.append(1), own(sample))[1])
    model = onnx.load(tiny_onnx("bert", "fast"))
    name = next(node.output[0] for node in model.graph.node if node.op_type == "LayerNormalization")
    ids = np.random.default_rng(0).integers(5, 100, (2, 8))
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    calibrate(model, [name], [feed, feed], method=method, percentile=99.9)
    assert len(read) == passes


def test_a_tensor_of_more_rows_than_tokens_is_counted_in_full() -> None:
    """For example a table of positions: its values are the same for every text, however short."""
    rows = np.random.default_rng(1).normal(size=(400, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Mul", ["table", "one"], ["x"]),
        helper.make_node("Cast", ["input_ids"], ["float"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["float", "axis"], ["logits"]),
    ]
    stored = {"table": rows, "one": np.ones(1, np.float32), "axis": np.array([2])}
    model = model_of(nodes, stored, 1)
    feed = {"input_ids": np.ones((1, 2), np.int64), "attention_mask": np.ones((1, 2), np.int64)}
    span = calibrate(model, ["x"], [feed] * 3, percentile=99.0001)["x"]
    assert span == RANGES["percentile"](seen([rows] * 3), 99.0001)


@pytest.mark.parametrize("method", list(RANGES))
def test_padding_moves_no_range(method: str, tiny_onnx: Callable[..., Path]) -> None:
    """A planted word with a huge embedding occurs only in the padding."""
    model = onnx.load(tiny_onnx("bert", "fast"))
    name = next(node.output[0] for node in model.graph.node if node.op_type == "LayerNormalization")
    table = next(tensor for tensor in model.graph.initializer if "word_embeddings" in tensor.name)
    words = onnx.numpy_helper.to_array(table).copy()
    words[3] = np.linspace(-1, 1, words.shape[1]) ** 9 * 1e4
    table.CopyFrom(onnx.numpy_helper.from_array(words, table.name))
    ids = np.random.default_rng(0).integers(5, 100, (2, 8))
    mask = np.ones_like(ids)
    short = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    wide = np.array([[0, 0], [0, 4]])
    long = {key: np.pad(value, wide) for key, value in short.items()}
    long["input_ids"][:, 8:] = 3
    spans = [calibrate(model, [name], [feed], method=method, percentile=99.9)[name] for feed in (short, long)]
    assert [spans[0].low, spans[0].high] == pytest.approx([spans[1].low, spans[1].high], rel=1e-5)
    shown = calibrate(
        model, [name], [{**long, "attention_mask": np.ones_like(long["input_ids"])}], method=method, percentile=100
    )
    assert shown[name].high > 1.2 * spans[0].high  # in the text it moves the range
