"""Pairs of segments: from one document, consecutive, swapped half the time, and only the order reveals which."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus_toys import bert_tokenizer, roberta_tokenizer, write_shards

from compress.corpus import MaskedBatches, PairBatches, sentence_ends
from compress.errors import CompressError

CLS, SEP, PAD, MASK, STOP = 2, 3, 0, 4, 5
LENGTH = 32


def documents(count: int = 300, seed: int = 3) -> list[list[int]]:
    """Return documents in which every token except the full stop is unique, so that it identifies its place in the text."""
    rng = np.random.default_rng(seed)
    numbers = iter(range(6, 60_000))
    sizes = [rng.integers(1, 9, rng.integers(1, 16)) for _ in range(count)]
    return [[token for size in every for token in [*(next(numbers) for _ in range(size)), STOP]] for every in sizes]


def pairs(
    folder: Path,
    texts: list[list[int]],
    *,
    ends: tuple[int, ...] = (STOP,),
    seed: int = 7,
    labels: Any = "sentence_order",
) -> PairBatches:
    tokens = np.array([token for text in texts for token in [*text, SEP]])
    shards = write_shards(folder / f"shards-{len(tokens)}", tokens, vocabulary=60_000)
    return PairBatches(shards, length=LENGTH, batch_size=8, seed=seed, ends=ends, labels=labels)


def segments(batch: dict[str, np.ndarray]) -> list[tuple[list[int], list[int]]]:
    """Return both segments of each row in the order of the text, by the label; check the special tokens."""
    segment_pairs = []
    for ids, mask, types, swapped in zip(*(batch[name] for name in NAMES), strict=True):
        size = int(mask.sum())
        assert mask[:size].all()
        assert not types[size:].any()
        assert (ids[size:] == PAD).all()
        middle = size - int(types.sum())
        assert types[middle:size].all()
        assert (ids[0], ids[middle - 1], ids[size - 1]) == (CLS, SEP, SEP)
        one, other = ids[1 : middle - 1].tolist(), ids[middle : size - 1].tolist()
        assert one
        assert other
        assert not {CLS, SEP, PAD} & {*one, *other}
        segment_pairs.append((other, one) if swapped else (one, other))
    return segment_pairs


NAMES = ("input_ids", "attention_mask", "token_type_ids", "sentence_order")


def inside(part: list[int], texts: list[list[int]]) -> bool:
    first = next(token for token in part if token != STOP)
    text = next(text for text in texts if first in text)
    start = text.index(first)
    return text[start : start + len(part)] == part


def test_segments_are_consecutive_sentences_of_one_document_and_the_label_is_their_order(tmp_path: Path):
    texts = documents()
    data = pairs(tmp_path, texts)
    batch = data.collate(np.arange(data.count))
    assert {name: (value.shape, value.dtype) for name, value in batch.items()} == {
        name: ((data.count,) if name == "sentence_order" else (data.count, LENGTH), np.int64) for name in NAMES
    }
    whole = 0
    for one, other in segments(batch):
        assert inside(one + other, texts)
        whole += one[-1] == other[-1] == STOP
    assert whole / data.count > 0.9  # the others are documents with one sentence
    assert data.lengths(np.arange(data.count)).tolist() == batch["attention_mask"].sum(axis=1).tolist()


def test_both_segments_are_whole_sentences_wherever_two_fit(tmp_path: Path):
    texts = [text for text in documents() if text.count(STOP) > 4]
    begins = {text[0] for text in texts} | {b for text in texts for a, b in pairwise(text) if a == STOP}
    data = pairs(tmp_path, texts)
    for one, other in segments(data.collate(np.arange(data.count))):
        assert one[-1] == other[-1] == STOP
        assert {one[0], other[0]} <= begins


def test_where_no_sentence_ends_sequences_are_full_and_split_anywhere(tmp_path: Path):
    texts = [[token for token in text if token != STOP] for text in documents()]
    texts = [text for text in texts if text]
    data = pairs(tmp_path, texts, ends=())
    long = [text for text in texts if len(text) >= LENGTH - 3]
    segment_pairs = segments(data.collate(np.arange(data.count)))
    assert all(inside(one + other, texts) for one, other in segment_pairs)
    assert all(len(one + other) == LENGTH - 3 for one, other in segment_pairs if any(one[0] in text for text in long))
    assert {len(one) for one, _ in segment_pairs} >= set(range(1, LENGTH - 3))


def test_every_token_of_every_document_but_the_shortest_is_read(tmp_path: Path):
    texts = [[token for token in text if token != STOP] for text in documents()]
    data = pairs(tmp_path, texts, ends=())
    read = {token for one, other in segments(data.collate(np.arange(data.count))) for token in one + other}
    assert read == {token for text in texts if len(text) >= 8 for token in text}
    assert data.count == sum(math.ceil(len(text) / (LENGTH - 3)) for text in texts if len(text) >= 8)


def test_half_of_the_pairs_are_swapped_and_each_epoch_draws_anew(tmp_path: Path):
    data = pairs(tmp_path, documents(1500))
    first, second = (data.collate(np.arange(data.count) + epoch * data.count) for epoch in (0, 1))
    trials, deviation = data.count, math.sqrt(data.count / 4)
    assert trials > 2000
    for batch in (first, second):
        assert abs(int(batch["sentence_order"].sum()) - trials / 2) < 4 * deviation
    differ = int((first["sentence_order"] != second["sentence_order"]).sum())
    assert abs(differ - trials / 2) < 4 * deviation
    places = [[len(one) for one, _ in segments(batch)] for batch in (first, second)]
    assert np.mean(np.array(places[0]) != places[1]) > 0.5


def test_a_pair_depends_on_seed_epoch_and_sequence_alone(tmp_path: Path):
    texts = documents()
    data = pairs(tmp_path, texts)
    indices = data.indices(len(data) + 3)
    assert (indices >= data.count).all()
    whole = data.collate(indices)
    for row, index in enumerate(indices):
        alone = data.collate(np.array([index]))
        assert all((alone[name][0] == whole[name][row]).all() for name in NAMES)
    other = pairs(tmp_path, texts, seed=8).collate(np.arange(data.count))["sentence_order"]
    assert 0.3 < np.mean(other != data.collate(np.arange(data.count))["sentence_order"]) < 0.7


@pytest.mark.parametrize("masked", [False, True])
def test_any_step_equals_iterating_there(tmp_path: Path, masked: bool):
    def fresh() -> PairBatches | MaskedBatches:
        data = pairs(tmp_path, documents())
        return MaskedBatches(data) if masked else data

    data = fresh()
    iterated = [data.collate(data.indices(step)) for step in range(2 * len(data) + 2)]
    assert sorted(np.concatenate([data.indices(step) for step in range(len(data))])) == list(
        range(iterated_count(data))
    )
    for step in (0, len(data) - 1, len(data), 2 * len(data) + 1, 3):
        again = fresh()
        batch = again.collate(again.indices(step))
        assert all((batch[name] == iterated[step][name]).all() for name in iterated[step])


def iterated_count(data: PairBatches | MaskedBatches) -> int:
    return data.count if isinstance(data, PairBatches) else data.text.count


def test_masking_hides_tokens_of_the_pairs_and_leaves_the_rest(tmp_path: Path):
    text = pairs(tmp_path, documents())
    data = MaskedBatches(text)
    for step in (1, len(data) + 1):
        plain, hidden = text.collate(text.indices(step)), data.collate(data.indices(step))
        chosen = hidden["labels"] != -100
        assert all((plain[name] == hidden[name]).all() for name in NAMES[1:])
        assert (hidden["labels"][chosen] == plain["input_ids"][chosen]).all()
        assert (hidden["input_ids"][~chosen] == plain["input_ids"][~chosen]).all()
        assert (plain["input_ids"][chosen] >= STOP).all()
        assert chosen.any(axis=1).all()
        assert (data.lengths(data.indices(step)) == text.lengths(text.indices(step))).all()


def test_a_document_that_is_cut_short_and_one_without_room_are_no_problem(tmp_path: Path):
    shards = write_shards(tmp_path, np.array([3, 9, 9, 3, *range(10, 100)]))
    data = PairBatches(shards, length=LENGTH, batch_size=1, seed=0)
    assert data.count == math.ceil(90 / (LENGTH - 3))
    assert all(min(one + other) >= 10 for one, other in segments(data.collate(np.arange(data.count))))


def test_less_text_than_a_batch_is_refused(tmp_path: Path):
    with pytest.raises(
        CompressError,
        match="gives 1 pairs of segments of 32 tokens, each from one document of at least 8; a batch needs 8: give more",
    ):
        pairs(tmp_path, [[*range(10, 20)], [*range(20, 26)]])
    with pytest.raises(CompressError, match="max_length is 7 tokens; expected at least 8"):
        PairBatches(write_shards(tmp_path, np.arange(5, 50)), length=7, batch_size=1, seed=0)


def test_the_tokens_that_end_a_sentence_are_those_of_the_vocabulary():
    tokenizer = bert_tokenizer()
    assert sentence_ends(tokenizer) == (tokenizer.token_to_id("."),)
    assert [roberta_tokenizer().id_to_token(number) for number in sentence_ends(roberta_tokenizer())] == [".", "!", "?"]


def test_a_next_sentence_follows_or_ends_a_pair_of_another_document(tmp_path: Path):
    texts = [text for text in documents(1500) if text.count(STOP) > 4]
    owner = {token: number for number, text in enumerate(texts) for token in text}
    data = pairs(tmp_path, texts, labels="next_sentence")
    batch = data.collate(np.arange(data.count))
    labels = batch["next_sentence"]
    assert abs(int(labels.sum()) - data.count / 2) < 4 * math.sqrt(data.count / 4)
    order = batch | {"sentence_order": np.zeros_like(labels)}
    whole = 0
    for (one, other), label in zip(segments(order), labels, strict=True):
        first, second = (next(token for token in part if token != STOP) for part in (one, other))
        assert inside(one, texts)
        if label:
            assert owner[first] != owner[second]
            assert inside(other, texts)
        else:
            assert inside(one + other, texts)
        whole += other[-1] == STOP
    assert whole / data.count > 0.95
    assert data.lengths(np.arange(data.count)).tolist() == batch["attention_mask"].sum(axis=1).tolist()
    again = pairs(tmp_path, texts, labels="next_sentence").collate(np.arange(data.count) + data.count)["next_sentence"]
    assert 0.4 < np.mean(again != labels) < 0.6


def test_a_single_document_has_no_other(tmp_path: Path):
    with pytest.raises(
        CompressError, match="segments of two documents of at least 8 tokens, and the corpus has one: put a blank line"
    ):
        pairs(tmp_path, [documents(1)[0] * 20], labels="next_sentence")


@pytest.mark.parametrize("labels", ["sentence_order", "next_sentence"])
def test_a_step_draws_each_pair_once_and_no_more_than_a_batch_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: Any
):
    drawn: list[int] = []
    draw = PairBatches._draw_pair

    def count(self: PairBatches, index: int) -> Any:
        drawn.append(index)
        return draw(self, index)

    monkeypatch.setattr(PairBatches, "_draw_pair", count)
    data = pairs(tmp_path, documents(), labels=labels)
    for step in range(2 * len(data)):
        indices = data.indices(step)
        drawn.clear()
        for start in range(0, len(indices), 3):  # as the loop does with micro-batches
            part = indices[start : start + 3]
            batch = data.collate(part)
            assert data.lengths(part).tolist() == batch["attention_mask"].sum(axis=1).tolist()
            assert data.lengths(indices).sum() > 0
        assert sorted(drawn) == sorted(indices.tolist())
        assert len(data._recent) <= data.batch_size


@pytest.mark.parametrize("labels", ["sentence_order", "next_sentence"])
def test_what_was_drawn_before_does_not_change_the_parts(tmp_path: Path, labels: Any):
    texts = documents()
    fresh, used = (pairs(tmp_path, texts, labels=labels) for _ in range(2))
    used.collate(used.indices(0))
    used.lengths(np.arange(used.count))
    for one, other in zip(fresh.held_out(0.2), used.held_out(0.2), strict=True):
        assert one is not None
        assert other is not None
        first, second = (part.collate(np.arange(part.count)) for part in (one, other))
        assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.parametrize("labels", ["sentence_order", "next_sentence"])
def test_pairs_that_are_held_out_are_those_at_the_end(tmp_path: Path, labels: Any):
    texts = documents()
    data = pairs(tmp_path, texts, labels=labels)
    train, held = data.held_out(0.1)
    assert held is not None
    assert (train.count, held.count) == (data.count - round(0.1 * data.count), round(0.1 * data.count))
    owner = {token: number for number, text in enumerate(texts) for token in text}
    seen = [
        {owner[token] for token in part.collate(np.arange(part.count))["input_ids"].ravel() if token > STOP}
        for part in (train, held)
    ]
    assert len(seen[0] & seen[1]) <= 1  # the document with the cut
    assert max(seen[0]) <= min(seen[1])
    for part in (train, held):
        batch = part.collate(np.arange(part.count))
        assert part.lengths(np.arange(part.count)).tolist() == batch["attention_mask"].sum(axis=1).tolist()


@pytest.mark.parametrize("labels", ["sentence_order", "next_sentence"])
def test_what_is_held_out_is_not_what_training_drew_under_the_same_ids(tmp_path: Path, labels: Any):
    data = pairs(tmp_path, documents(), labels=labels)
    (train, held), (_, alone) = data.held_out(0.2), data.held_out(0.2)
    assert held is not None and alone is not None
    ids = np.arange(4)
    learnt, unseen = train.collate(ids), held.collate(ids)
    assert not np.array_equal(unseen["input_ids"], learnt["input_ids"])
    assert np.array_equal(unseen["input_ids"], alone.collate(ids)["input_ids"])
