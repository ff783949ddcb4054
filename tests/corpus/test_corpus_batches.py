"""Full sequences in a seeded order, and their masking."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from corpus_toys import WORDS, bert_tokenizer, roberta_tokenizer, write_shards

from compress.corpus import MaskedBatches, TextBatches, TokenShards
from compress.corpus.masking import _of_first_pieces
from compress.errors import CompressError
from compress.tokenization.word_starts import continuing


def stream(count: int, vocabulary: int = 1000) -> np.ndarray:
    """Return tokens that are not special, with a separator every 37."""
    tokens = np.random.default_rng(3).integers(5, vocabulary, count)
    tokens[36::37] = 3
    return tokens


def batches(tmp_path: Path, count: int = 5000, *, length: int = 32, batch_size: int = 8, seed: int = 7) -> TextBatches:
    return TextBatches(
        write_shards(tmp_path / "shards", stream(count)), length=length, batch_size=batch_size, seed=seed
    )


def epoch(data: TextBatches | MaskedBatches, number: int) -> list[np.ndarray]:
    return [data.indices(step) for step in range(number * len(data), (number + 1) * len(data))]


@pytest.mark.parametrize("parts", [1, 3, 50])
def test_reading_runs_across_shards(tmp_path: Path, parts: int):
    tokens = stream(1000)
    shards = write_shards(tmp_path, tokens, parts=parts)
    assert len(shards) == 1000
    for start, count in [(0, 1000), (0, 1), (999, 1), (333, 2), (19, 700), (990, 30), (1000, 5), (5, 0)]:
        assert shards.read(start, count).tolist() == tokens[start : start + count].tolist()


def test_every_token_is_used_once_an_epoch_up_to_the_tail(tmp_path: Path):
    data = batches(tmp_path)
    assert data.count == 5000 // 30
    for number in (0, 1):
        order = np.concatenate(epoch(data, number))
        assert sorted(order.tolist()) == list(range(data.count))
        ids = data.collate(np.sort(order))["input_ids"]
        assert ids[:, 1:-1].ravel().tolist() == stream(5000)[: data.count * 30].tolist()


def test_tokens_are_those_of_the_text_and_special_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("compress.corpus.batches._READ_AT_ONCE", 700)
    data = batches(tmp_path, 2000)
    read = np.concatenate([data.collate(ids)["input_ids"].ravel() for ids in epoch(data, 0)])
    assert set(read.tolist()) <= set(data.tokens().tolist()) == {*stream(2000).tolist(), *data.shards.special.every}
    assert len(data.tokens()) < data.shards.vocabulary


def test_sequences_are_full_and_dressed(tmp_path: Path):
    data = batches(tmp_path)
    batch = data.collate(data.indices(0))
    assert {name: value.shape for name, value in batch.items()} == dict.fromkeys(
        ("input_ids", "attention_mask", "token_type_ids"), (8, 32)
    )
    assert all(value.dtype == np.int64 for value in batch.values())
    assert (batch["input_ids"][:, 0] == 2).all()
    assert (batch["input_ids"][:, -1] == 3).all()
    assert batch["attention_mask"].all()
    assert not batch["token_type_ids"].any()
    assert data.lengths(data.indices(0)).tolist() == [32] * 8
    assert len(data.indices(len(data) - 1)) == data.count - 8 * (len(data) - 1)


@pytest.mark.parametrize("kind", [TextBatches, MaskedBatches])
def test_any_step_equals_iterating_there(tmp_path: Path, kind: type):
    def fresh() -> TextBatches | MaskedBatches:
        text = batches(tmp_path)
        return text if kind is TextBatches else MaskedBatches(text)

    data = fresh()
    iterated = [data.collate(data.indices(step)) for step in range(3 * len(data))]
    for step in (0, 1, len(data) - 1, len(data), 2 * len(data) + 5, 3 * len(data) - 1, 4):
        again = fresh()
        batch = again.collate(again.indices(step))
        assert all((batch[name] == iterated[step][name]).all() for name in iterated[step])


def test_epochs_and_seeds_have_their_own_order(tmp_path: Path):
    data, other = batches(tmp_path), batches(tmp_path, seed=8)
    orders = [np.concatenate(epoch(data, 0)), np.concatenate(epoch(data, 1)), np.concatenate(epoch(other, 0))]
    assert all((first != second).mean() > 0.9 for first, second in zip(orders, [*orders[1:], orders[0]], strict=True))
    assert (orders[0] != np.arange(data.count)).mean() > 0.9


def test_a_sample_holds_the_first_sequences_of_training(tmp_path: Path):
    data = batches(tmp_path)
    sample = data.sample(20)
    assert [len(batch["input_ids"]) for batch in sample] == [8, 8, 4]
    trained = np.concatenate([data.collate(data.indices(step))["input_ids"] for step in range(3)])[:20]
    assert (np.concatenate([batch["input_ids"] for batch in sample]) == trained).all()
    assert sum(len(batch["input_ids"]) for batch in data.sample(10**6)) == data.count


def test_less_text_than_a_batch_and_senseless_sizes_are_refused(tmp_path: Path):
    with pytest.raises(CompressError, match=r"has 239 tokens; a batch of 8 sequences of 32 needs 240: give more text"):
        batches(tmp_path, 239)
    assert len(batches(tmp_path, 240)) == 1
    with pytest.raises(CompressError, match="max_length is 7 tokens; expected at least 8"):
        batches(tmp_path, length=7)


def test_what_is_no_tokenised_corpus_is_refused(tmp_path: Path):
    with pytest.raises(CompressError, match="is not a tokenised corpus, or is damaged"):
        TokenShards.open(tmp_path)
    write_shards(tmp_path, stream(100))
    (tmp_path / "tokens-00001.bin").write_bytes(b"12")
    with pytest.raises(CompressError, match=r"damaged: tokens-00001\.bin has 2 bytes, expected 66"):
        TokenShards.open(tmp_path)


def within(count: int, trials: int, probability: float) -> bool:
    """Whether a count is within four standard deviations of its binomial mean."""
    return abs(count - trials * probability) < 4 * math.sqrt(trials * probability * (1 - probability))


def test_masking_has_the_published_shares_and_spares_special_tokens(tmp_path: Path):
    text = batches(tmp_path, 200_000, length=128, batch_size=32)
    data = MaskedBatches(text)
    hidden, plain = data.collate(np.arange(text.count)), text.collate(np.arange(text.count))
    ids, labels, original = hidden["input_ids"], hidden["labels"], plain["input_ids"]
    special, selected = original < 5, labels != -100
    assert not (selected & special).any()
    assert (labels[selected] == original[selected]).all()
    assert (ids[~selected] == original[~selected]).all()
    assert within(int(selected.sum()), int((~special).sum()), 0.15)
    chosen, count = ids[selected], int(selected.sum())
    assert within(int((chosen == 4).sum()), count, 0.8)
    kept = chosen == original[selected]
    assert within(int(kept.sum()), count, 0.1 + 0.1 / 995)  # a random token sometimes equals the original
    random = chosen[~kept & (chosen != 4)]
    assert random.min() >= 5
    assert random.max() < 1000
    assert within(int((random < 500).sum()), len(random), 495 / 995)


def test_masking_depends_on_seed_epoch_and_sequence_alone(tmp_path: Path):
    text = batches(tmp_path)
    data = MaskedBatches(text)
    indices = data.indices(len(data) + 2)
    assert (indices >= text.count).all()
    whole = data.collate(indices)
    for row, index in enumerate(indices):
        alone = data.collate(np.array([index]))
        rows = whole.keys() - {"masked"}
        assert all((alone[name][0] == whole[name][row]).all() for name in rows)
    assert (whole["masked"] == np.flatnonzero(whole["labels"] != -100)).all()
    sequences = np.arange(text.count)
    first, second = data.collate(sequences), data.collate(sequences + text.count)
    other = MaskedBatches(batches(tmp_path, seed=8)).collate(sequences)
    for later in (second, other):
        both = (first["labels"] != -100) & (later["labels"] != -100)
        assert within(int(both.sum()), int((first["labels"] != -100).sum()), 0.15)  # independent draws


def test_every_sequence_with_text_has_something_to_say(tmp_path: Path):
    data = MaskedBatches(batches(tmp_path, 60_000, length=8, batch_size=1))
    counts = (data.collate(np.arange(len(data)))["labels"] != -100).sum(axis=1)
    assert counts.min() == 1


def test_a_vocabulary_without_a_mask_token_is_refused(tmp_path: Path):
    text = batches(tmp_path)
    document = (tmp_path / "shards" / "corpus.json").read_text()
    (tmp_path / "shards" / "corpus.json").write_text(document.replace('"mask": 4', '"mask": null'))
    unmasked = TextBatches(TokenShards.open(tmp_path / "shards"), length=32, batch_size=8, seed=text.seed)
    with pytest.raises(CompressError, match=r"no \[MASK\] or <mask> token"):
        MaskedBatches(unmasked)


def test_what_is_held_out_is_never_trained_on(tmp_path: Path):
    data = batches(tmp_path)
    train, held = data.held_out(0.05)
    assert held is not None
    assert (train.count, held.count) == (158, 8)
    orders = (np.sort(np.concatenate(epoch(train, 2))), np.arange(held.count))
    parts = [part.collate(order)["input_ids"] for part, order in zip((train, held), orders, strict=True)]
    assert np.concatenate(parts)[:, 1:-1].ravel().tolist() == stream(5000)[: data.count * 30].tolist()
    assert data.held_out(0.001)[1] is None
    message = (
        "held_out keeps 159 of the 166 sequences of 32 tokens from training, and a batch needs 8 of the 7 that are left"
    )
    with pytest.raises(CompressError, match=f"{message}: give more text, or lower held_out or batch_size"):
        data.held_out(0.96)


def test_the_same_masks_come_again_where_that_is_asked(tmp_path: Path):
    text = batches(tmp_path)
    data = MaskedBatches(text, masks=2)
    rounds = [data.collate(np.arange(text.count) + number * text.count)["labels"] for number in range(4)]
    assert (rounds[0] == rounds[2]).all()
    assert (rounds[1] == rounds[3]).all()
    assert (rounds[0] != rounds[1]).any()
    assert (rounds[0] == MaskedBatches(text).collate(np.arange(text.count))["labels"]).all()


def test_the_pieces_of_a_word_are_hidden_together(tmp_path: Path):
    text = batches(tmp_path, 200_000, length=128, batch_size=32)
    continues = np.arange(1000) >= 600  # four tokens in ten continue the word before them
    data = MaskedBatches(text, continues=continues)
    batch, plain = data.collate(np.arange(text.count)), text.collate(np.arange(text.count))["input_ids"]
    hidden = batch["labels"] != -100
    after, goes_on = plain[:, 2:-1], continues[plain[:, 2:-1]] & (plain[:, 1:-2] >= 5)
    assert (hidden[:, 2:-1][goes_on] == hidden[:, 1:-2][goes_on]).all()
    assert not hidden[plain < 5].any()
    first = ~continues[after] & (after >= 5)
    assert within(int(hidden[:, 2:-1][first].sum()), int(first.sum()), 0.15)
    alike = (batch["input_ids"] == 4)[:, 2:-1][goes_on & hidden[:, 2:-1]]
    assert within(int(alike.sum()), len(alike), 0.8)  # the replacement of each piece is drawn separately


def test_a_word_that_is_cut_behind_a_special_token_begins_with_what_is_left():
    """For example a second segment that starts within a word."""
    ids = np.array([[2, 700, 701, 10, 3, 702, 703, 11, 3]])
    special, continues = ids < 5, ids >= 600
    draws = np.where(special, 1.0, np.arange(9) / 10)
    word_draws = _of_first_pieces(draws, continues, special)
    assert word_draws.tolist() == [[1.0, 0.1, 0.1, 0.3, 1.0, 0.5, 0.5, 0.7, 1.0]]


def test_the_tokens_that_go_on_with_a_word_are_known_of_both_styles():
    bert = bert_tokenizer([*WORDS, "##ly", "##s"])
    assert [bert.id_to_token(int(number)) for number in np.flatnonzero(continuing(bert))] == ["##ly", "##s"]
    roberta = roberta_tokenizer()
    goes_on = {roberta.id_to_token(int(number)) for number in np.flatnonzero(continuing(roberta))}
    assert {"a", "!"} <= goes_on
    assert not {"<s>", "</s>", "<mask>", "Ġ"} & goes_on
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    with pytest.raises(
        CompressError, match="whole_words: a WordLevel tokenizer does not say which tokens begin a word"
    ):
        continuing(words)
