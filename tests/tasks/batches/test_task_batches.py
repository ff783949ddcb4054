from __future__ import annotations

import numpy as np
import pytest

from compress.errors import CompressError
from compress.tasks import BucketSampler, Encoded, Split, collate, encode, sorted_chunks, wordpiece

TOKENIZER = wordpiece(300)
LONG = "the movie was good and the plot was bad"


def split(*texts: tuple[str, ...]) -> Split:
    return Split(tuple(map(list, zip(*texts, strict=True))), np.arange(len(texts)))


def ragged(*lengths: int) -> Encoded:
    ids = [np.arange(1, n + 1, dtype=np.int32) for n in lengths]
    return Encoded(ids, [(i > 1).astype(np.int8) for i in ids], np.arange(len(lengths), dtype=np.int64))


def test_encode_gives_what_the_tokenizer_gives() -> None:
    data = split(("the movie was good .", "a dog runs ."), ("bad", "a boy sleeps in the park ."))
    encoded = encode(TOKENIZER, data, 64)
    for i in range(2):
        expected = TOKENIZER.encode(data.texts[0][i], data.texts[1][i])
        assert encoded.input_ids[i].tolist() == expected.ids
        assert encoded.token_type_ids[i].tolist() == expected.type_ids
    assert encoded.lengths.tolist() == [len(ids) for ids in encoded.input_ids]
    assert encoded.labels is data.labels


def test_encode_is_the_same_across_its_inner_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    data = split(*[(f"the movie was {word} .",) for word in ("good", "very bad", "dull", "not warm", "flat")])
    whole = encode(TOKENIZER, data, 64)
    monkeypatch.setattr("compress.tasks.batches.task_batches.ENCODE_AT_ONCE", 2)
    parts = encode(TOKENIZER, data, 64)
    assert [i.tolist() for i in whole.input_ids] == [i.tolist() for i in parts.input_ids]
    assert len(parts) == 5


def test_the_longer_text_of_a_pair_is_cut_first_and_the_tokenizer_stays_as_it_was() -> None:
    short = TOKENIZER.encode("the movie", add_special_tokens=False).ids
    limit = 2 * len(short) + 3
    ids = encode(TOKENIZER, split((LONG, "the movie")), limit).input_ids[0].tolist()
    assert len(ids) == limit < len(TOKENIZER.encode(LONG, "the movie").ids)
    assert ids[-len(short) - 1 : -1] == short  # the second text is whole, before its [SEP]
    assert TOKENIZER.truncation is None and TOKENIZER.padding is None


def test_encode_undoes_a_tokenizer_that_pads_and_cuts() -> None:
    padded = wordpiece(300)
    padded.enable_padding(length=50)
    padded.enable_truncation(3)
    assert encode(padded, split((LONG,)), 64).input_ids[0].tolist() == TOKENIZER.encode(LONG).ids


def test_max_length_without_room_for_text_is_refused() -> None:
    with pytest.raises(CompressError, match="max_length is 3; expected more than the 3 special tokens"):
        encode(TOKENIZER, split(("a", "b")), 3)


@pytest.mark.parametrize(("count", "batch"), [(1, 4), (7, 4), (64, 8), (1000, 3)])
def test_an_epoch_holds_every_example_once(count: int, batch: int) -> None:
    lengths = np.random.default_rng(0).integers(3, 40, count)
    sampler = BucketSampler(lengths, batch, seed=5)
    batches = sampler.epoch(0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    assert len(batches) == len(sampler)
    assert sorted(map(len, batches))[1:] == [batch] * (len(batches) - 1)  # one batch at most is short


def test_epochs_depend_on_seed_and_number_alone() -> None:
    lengths = np.random.default_rng(1).integers(3, 40, 300)

    def flat(seed: int, epoch: int) -> list[int]:
        return np.concatenate(BucketSampler(lengths, 8, seed).epoch(epoch)).tolist()

    sampler = BucketSampler(lengths, 8, 3)
    sampler.epoch(0)
    assert np.concatenate(sampler.epoch(4)).tolist() == flat(3, 4)  # no state from epoch to epoch
    orders = [flat(3, 0), flat(3, 1), flat(4, 0)]
    assert orders[0] != orders[1] and orders[0] != orders[2] and orders[1] != orders[2]


def test_batches_have_near_equal_lengths_and_come_in_random_order() -> None:
    lengths = np.random.default_rng(2).integers(3, 128, 2000)
    batches = BucketSampler(lengths, 16, 0).epoch(0)
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert padded < 1.05 * lengths.sum()  # batches at random would pad by about 90%
    longest = [int(lengths[batch].max()) for batch in batches]
    assert longest != sorted(longest)


def test_sampler_refuses_an_empty_batch() -> None:
    with pytest.raises(CompressError, match="batch_size is 0"):
        BucketSampler(np.ones(3), 0, 0)


def test_collate_pads_on_the_right() -> None:
    batch = collate(ragged(2, 4, 3), np.array([2, 0]), pad_id=9)
    assert batch["input_ids"].tolist() == [[1, 2, 3], [1, 2, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert batch["token_type_ids"].tolist() == [[0, 1, 1], [0, 1, 0]]
    assert batch["labels"].tolist() == [2, 0]
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int64)}


def test_collate_keeps_scores_as_float32() -> None:
    encoded = Encoded(ragged(2).input_ids, ragged(2).token_type_ids, np.array([2.5], np.float32))
    assert collate(encoded, np.array([0]), 0)["labels"].dtype == np.float32


@pytest.mark.parametrize(("tokens", "most"), [(64, 4), (4096, 64), (10, 64)])
def test_sorted_chunks_stay_within_their_limits(tokens: int, most: int) -> None:
    lengths = np.random.default_rng(3).integers(1, 60, 500)
    chunks = sorted_chunks(lengths, tokens, most)
    assert sorted(np.concatenate(chunks).tolist()) == list(range(500))
    for chunk in chunks:
        assert len(chunk) <= most
        assert len(chunk) == 1 or len(chunk) * lengths[chunk].max() <= tokens
    flat = lengths[np.concatenate(chunks)]
    assert (np.diff(flat) >= 0).all()


def test_sorted_chunks_of_nothing() -> None:
    assert sorted_chunks(np.array([], dtype=int)) == []
