"""Tables of a reader's logits at every token of some windows: looked up, calibrated, averaged, decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from compress.losses.spans import NOTHING, span_cross_entropy_loss
from compress.tasks import EncodedSpans, Split, collate, encode, of_words, span_tables, wordpiece
from compress.tasks.ensembles import HIGHEST, LOWEST, fit_temperature, mean_of_log_probabilities

CONTEXT = "small river music town good people " * 6


def windows_of(count: int = 12, length: int = 24) -> EncodedSpans:
    """Return windows of contexts with different lengths, one of them empty; every third question has no answer."""
    contexts = [CONTEXT[: 17 * number].strip() for number in range(count)]
    labels = [[[6, 11]] if number % 3 and len(context) > 11 else [] for number, context in enumerate(contexts)]
    answers = of_words([np.array(spans, np.int32).reshape(-1, 2) for spans in labels])
    questions = ["which river?", "what", "the good people"] * (count // 3)
    windows = encode(wordpiece(300), Split((questions, contexts), answers, unanswerable=True), length)
    assert isinstance(windows, EncodedSpans)
    return windows


def table_of(windows: EncodedSpans, seed: int = 0, scale: float = 3.0, right: float = 2.0) -> np.ndarray:
    """Return logits with the gold tokens raised by `right` on average."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((int(windows.lengths.sum()), 2))
    gold = windows.starts[:-1, None] + windows.places
    table[gold, [0, 1]] += right
    return (scale * table).astype(np.float32)


def batch_of(windows: EncodedSpans) -> dict[str, np.ndarray]:
    return collate(windows, np.arange(len(windows)), 0)


def nll(temperature: float, table: np.ndarray, windows: EncodedSpans) -> float:
    """Compute the loss that students learn answers with, in float64."""
    batch = batch_of(windows)
    logits = span_tables.padded_outputs(table, windows, np.arange(len(windows)), batch["input_ids"].shape[1])
    labels, compared = (torch.from_numpy(batch[name]) for name in ("labels", "compared"))
    return float(span_cross_entropy_loss(torch.from_numpy(logits).double() / temperature, labels, compared))


def test_what_is_put_is_found_and_padding_is_nothing() -> None:
    windows, rng = windows_of(), np.random.default_rng(1)
    outputs = rng.standard_normal((len(windows), int(windows.lengths.max()) + 3, 2)).astype(np.float32)
    table = np.full((int(windows.lengths.sum()), 2), np.nan, np.float32)
    for rows in np.array_split(rng.permutation(len(windows)), 3):
        span_tables.put_outputs(table, windows, rows, outputs[rows])
    assert np.isfinite(table).all()
    rows = np.array([5, 0, 3])
    batch = span_tables.padded_outputs(table, windows, rows, outputs.shape[1])
    for place, row in enumerate(rows):
        length = windows.lengths[row]
        np.testing.assert_array_equal(batch[place, :length], outputs[row, :length])
        assert (batch[place, length:] == 0).all()


def test_a_file_holds_it_and_is_read_in_parts(tmp_path: Path) -> None:
    windows = windows_of()
    table = span_tables.create_table(tmp_path / "table.npy", windows)
    table[:] = table_of(windows)
    table.flush()
    memmap = np.load(tmp_path / "table.npy", mmap_mode="r", allow_pickle=False)
    assert memmap.dtype == np.float32
    np.testing.assert_array_equal(memmap, table_of(windows))


@pytest.mark.parametrize(("seed", "scale", "right"), [(0, 2.0, 2.0), (1, 9.0, 3.0), (2, 0.4, 2.5)])
def test_the_temperature_is_that_of_an_independent_minimiser(seed: int, scale: float, right: float) -> None:
    windows = windows_of()
    table = table_of(windows, seed, scale, right)
    minimum: Any = minimize_scalar(
        lambda log: nll(np.exp(log), table, windows),
        bounds=(np.log(LOWEST), np.log(HIGHEST)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    temperature = span_tables.fit_span_temperature(table, windows)
    assert LOWEST < temperature < HIGHEST
    assert np.log(temperature) == pytest.approx(minimum.x, abs=1e-6)  # a minimum is flat
    assert nll(temperature, table, windows) <= minimum.fun + 1e-12


def test_windows_of_one_length_have_the_temperature_of_classes() -> None:
    """Uses the compared tokens, first for the start, then for the end."""
    windows = windows_of().take(np.array([4, 4, 4, 4, 4, 4]))
    table = table_of(windows, 3, 3.0, 1.0)
    compared = batch_of(windows)["compared"][0] == 1
    each = table.reshape(len(windows), -1, 2)[:, compared]
    logits = np.concatenate([each[..., 0], each[..., 1]])
    labels = (np.cumsum(compared) - 1)[windows.places].T.ravel()
    assert span_tables.fit_span_temperature(table, windows) == pytest.approx(fit_temperature(logits, labels), rel=1e-9)


def test_where_every_start_and_end_is_right_it_is_one() -> None:
    windows = windows_of()
    assert span_tables.fit_span_temperature(table_of(windows, right=50.0), windows) == 1.0


def test_an_answer_that_a_teacher_cannot_give_does_not_count() -> None:
    """Its start and end have no teacher logits; the temperature is that of the others."""
    windows = windows_of()
    table = table_of(windows, 4, 5.0)
    without = windows.take(np.arange(len(windows) - 1))
    table[windows.starts[-2] + windows.places[-1], [0, 1]] = NOTHING
    expected = span_tables.fit_span_temperature(table[: windows.starts[-2]], without)
    assert LOWEST < expected < HIGHEST
    assert span_tables.fit_span_temperature(table, windows) == pytest.approx(expected, rel=1e-9)


def test_calibrated_logits_are_logarithms_of_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    windows, temperature = windows_of(), 2.5
    whole, parts = table_of(windows), table_of(windows)
    span_tables.calibrate(whole, windows, temperature)
    monkeypatch.setattr(span_tables, "ENCODE_AT_ONCE", 3)
    span_tables.calibrate(parts, windows, temperature)
    np.testing.assert_array_equal(parts, whole)
    compared = batch_of(windows)["compared"]
    for row, logits in enumerate(np.split(table_of(windows), windows.starts[1:-1])):
        kept = compared[row, : len(logits)] == 1
        actual = whole[windows.starts[row] : windows.starts[row + 1]]
        expected = torch.log_softmax(torch.from_numpy(logits[kept]).double() / temperature, dim=0)
        np.testing.assert_allclose(actual[kept], expected.numpy(), rtol=1e-6, atol=1e-6)  # rounded to fp32 once
        assert (actual[~kept] == 0).all()


def test_the_mean_of_several_is_that_of_their_probabilities() -> None:
    windows = windows_of()
    tables = [table_of(windows, seed) for seed in (5, 6)]
    for table, temperature in zip(tables, (0.5, 3.0), strict=True):
        span_tables.calibrate(table, windows, temperature)
    mean = mean_of_log_probabilities(tables)
    np.testing.assert_allclose(np.exp(mean), np.mean(np.exp(np.stack(tables, dtype=np.float64)), axis=0), rtol=1e-12)
    np.testing.assert_array_equal(mean_of_log_probabilities([tables[0]] * 2).astype(np.float32), tables[0])


def test_it_is_decoded_as_the_outputs_are(monkeypatch: pytest.MonkeyPatch) -> None:
    windows, table = windows_of(), table_of(windows_of())
    length = int(windows.lengths.max())
    outputs = span_tables.padded_outputs(table, windows, np.arange(len(windows)), length)
    expected = windows.collected([(np.arange(len(windows)), outputs)])
    monkeypatch.setattr(span_tables, "sorted_chunks", lambda lengths: np.array_split(np.argsort(lengths), 4))
    np.testing.assert_array_equal(span_tables.collect_outputs(table, windows), expected)
    assert expected[:, 4].mean() > 0.3, "many answers are right"
