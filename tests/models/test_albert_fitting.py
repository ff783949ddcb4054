"""Fitting a shared block to the layers that it replaces, and its embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from albert_toys import EMBEDDING, bert, blocks, card, converted, text
from text_batches import batches
from transformers import BertForSequenceClassification

from compress.models.features.named import compute_features
from compress.models.students import fitting, table_errors, thin_sample
from compress.models.students.activations import array
from compress.models.students.factorising import truncated_svd
from compress.models.students.parts import TABLES

HEADS, HEAD = 4, 8


@pytest.fixture(scope="module")
def teacher() -> Any:
    return bert()


@pytest.fixture(scope="module")
def built(teacher: Any) -> Any:
    return converted(card(), teacher)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rank", [1, 5, 12])
def test_what_a_truncated_svd_loses_is_the_tail_of_the_squared_singular_values(weighted: bool, rank: int):
    random = np.random.default_rng(rank)
    rows = random.normal(size=(40, 12)) * np.geomspace(1, 0.05, 12)
    weights = random.integers(1, 50, size=40).astype(float) if weighted else None
    basis = truncated_svd(rows, rank, weights)
    scaled = rows * np.sqrt(np.ones(40) if weights is None else weights)[:, None]
    np.testing.assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-12)
    lost = ((scaled - scaled @ basis @ basis.T) ** 2).sum()
    tail = (np.linalg.svd(scaled, compute_uv=False)[rank:] ** 2).sum()
    # float64, through the squares of the rows: rounding is relative to the largest of them
    np.testing.assert_allclose(lost, tail, rtol=1e-9, atol=1e-12 * (scaled**2).sum())


def test_weights_are_rows_said_again():
    rows = np.random.default_rng(0).normal(size=(10, 6))
    times = np.array([1, 4, 2, 1, 1, 7, 1, 3, 1, 2])
    one, other = truncated_svd(rows, 3, times.astype(float)), truncated_svd(np.repeat(rows, times, axis=0), 3)
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-12)


def centred(model: Any, name: str) -> np.ndarray:
    table = array(getattr(model.embeddings, name).weight)
    return table - table.mean(1, keepdims=True)


def test_table_errors_are_those_of_an_independent_least_squares(teacher: Any, built: Any):
    errors = table_errors(built.albert, teacher.bert)
    assert list(errors) == list(TABLES)
    for name in TABLES:
        small, full = centred(built.albert, name), centred(teacher.bert, name)
        best = np.linalg.lstsq(small, full, rcond=None)[0]
        wanted = np.linalg.norm(full - small @ best) / np.linalg.norm(full)
        np.testing.assert_allclose(errors[name], wanted, rtol=1e-6, atol=1e-6)  # float64, of tables kept in fp32
    assert errors["word_embeddings"] > 0.3  # 7 of 32 directions of noise


def test_flat_tables_lose_nothing():
    flat = bert(rank=EMBEDDING - 1)
    assert max(table_errors(converted(card(), flat).albert, flat.bert).values()) < 1e-6  # fp32 tables


def test_rows_that_the_text_uses_are_kept_better():
    """The basis weighs a row by its uses: the half of the vocabulary that the text uses loses less."""
    model = bert()
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.mul_(3)
    student = converted(card(), model)
    used = np.zeros(120)
    for batch in batches(1, 8):
        np.add.at(used, batch["input_ids"][batch["attention_mask"] == 1], 1)
    small, full = centred(student.albert, "word_embeddings"), centred(model.bert, "word_embeddings")
    left = ((full - small @ np.linalg.lstsq(small, full, rcond=None)[0]) ** 2).sum(1) / (full**2).sum(1)
    assert left[used > np.median(used)].mean() < left[used == 0].mean()


def test_each_head_is_the_head_of_its_index_in_one_layer_as_many_from_each(teacher: Any, built: Any):
    """Attention scores can then be compared head by head."""
    (block,) = blocks(built)
    layers = [layer.attention.self for layer in teacher.bert.encoder.layer]
    sources = []
    for head in range(HEADS):
        rows = slice(head * HEAD, (head + 1) * HEAD)
        matches = [
            number
            for number, layer in enumerate(layers)
            if all(
                torch.equal(getattr(block.attention, kind).weight[rows], getattr(layer, kind).weight[rows])
                and torch.equal(getattr(block.attention, kind).bias[rows], getattr(layer, kind).bias[rows])
                for kind in ("query", "key", "value")
            )
        ]
        assert len(matches) == 1
        sources += matches
    assert sorted(sources) == [0, 1, 2, 3]


def test_scores_of_a_head_are_those_of_its_source_on_the_same_stream():
    """All layers are the same, so the scores of every repeat are the teacher's, head by head."""
    teacher = bert(layers=2, alike=True, rank=EMBEDDING - 1)
    student = converted(card(2), teacher)
    names = ["scores[0]", "scores[1]"]
    with torch.no_grad():
        mine, theirs = (compute_features(model, text(), names) for model in (student, teacher))
    for name in names:
        torch.testing.assert_close(mine[name], theirs[name], rtol=0, atol=1e-4)  # fp32, sums over 8 of states near 10
        assert not torch.allclose(mine[name], theirs[name].roll(1, dims=1), atol=0.1)


def test_every_layer_gives_as_many_neurons(teacher: Any, built: Any):
    (block,) = blocks(built)
    reads = [{row.tobytes() for row in array(layer.intermediate.dense.weight)} for layer in teacher.bert.encoder.layer]
    mine = [row.tobytes() for row in array(block.ffn.weight)]
    assert [sum(row in read for row in mine) for read in reads] == [12, 12, 12, 12]
    assert len(set(mine)) == 48


def test_a_neuron_that_layers_have_in_common_is_taken_once():
    """Both layers have the same feed-forward network, so the block contains each neuron once."""
    model = bert(layers=2)
    model.bert.encoder.layer[1].intermediate.load_state_dict(model.bert.encoder.layer[0].intermediate.state_dict())
    (block,) = blocks(converted(card(2), model))
    rows = {row.tobytes() for row in array(model.bert.encoder.layer[0].intermediate.dense.weight)}
    assert {row.tobytes() for row in array(block.ffn.weight)} == rows


def test_a_block_that_stands_for_one_layer_reads_as_that_layer_does(teacher: Any):
    student = converted(card(share="none", block="fit"), teacher)
    for block, layer in zip(blocks(student), teacher.bert.encoder.layer, strict=True):
        assert torch.equal(block.ffn.weight, layer.intermediate.dense.weight)
        assert torch.equal(block.attention.value.weight, layer.attention.self.value.weight)
        # refitted to the rest, which is rounding: a change far below the weights' 0.1
        torch.testing.assert_close(block.ffn_output.weight, layer.output.dense.weight, rtol=0, atol=1e-4)
        torch.testing.assert_close(block.attention.dense.weight, layer.attention.output.dense.weight, rtol=0, atol=1e-4)


def error(student: Any, teacher: BertForSequenceClassification) -> float:
    """Return the relative error of the hidden states after each layer, on text that was not fitted."""
    batch = text(21)
    real = batch["attention_mask"].bool()
    names = [f"hidden[{layer}]" for layer in range(1, 5)]
    with torch.no_grad():
        mine, theirs = (compute_features(model, batch, names) for model in (student, teacher))
    return sum(float((mine[n][real] - theirs[n][real]).norm() / theirs[n][real].norm()) for n in names) / len(names)


def test_a_fitted_start_is_nearer_than_the_mean_and_more_blocks_are_nearer(teacher: Any, built: Any):
    mean = error(converted(card(block="mean"), teacher), teacher)
    fitted = error(built, teacher)
    assert fitted < mean
    assert error(converted(card(share="none"), teacher), teacher) < error(converted(card(groups=2), teacher), teacher)


def test_thinned_takes_texts_evenly_whatever_the_batches():
    whole = batches(0, 20)
    texts = [row.tolist() for batch in whole for row in batch["input_ids"]]
    tokens = sum(int(batch["attention_mask"].sum()) for batch in whole)
    few = thin_sample(whole, tokens // 5)
    assert [row.tolist() for batch in few for row in batch["input_ids"]] == texts[2::5]
    assert all(len({len(value) for value in batch.values()}) == 1 for batch in few)
    one = {name: value[:1].repeat(40, 1) for name, value in whole[0].items()}  # larger than requested
    assert len(thin_sample([one], 3)[0]["input_ids"]) == 1
    everything = thin_sample(whole, 10 * tokens)
    assert [row.tolist() for batch in everything for row in batch["input_ids"]] == texts


def test_layers_are_mixed_before_a_regression_keeps_rows_back():
    """Its last rows then come from all layers."""
    layers = [np.full((4, 2), number, dtype=float) for number in range(3)]
    assert fitting._interleave_layers(layers)[:, 0].tolist() == [0, 1, 2] * 4
