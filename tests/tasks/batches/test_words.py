"""Labelled words as windows of tokens: training targets, and the way back from tokens to words."""

from __future__ import annotations

import numpy as np
import pytest
import tokenizers

from compress.metrics.tags import concatenate_labels, split_labels
from compress.runtime.words import NOWHERE
from compress.tasks import EncodedWords, Split, collate, encode, of_words, wordpiece
from compress.tokenization.truncation import set_truncation_side

TEXTS = ("small town near the old river", "", "river", "\u0000 town", "near town " * 12)


@pytest.fixture(scope="module")
def tokenizer() -> tokenizers.Tokenizer:
    return wordpiece(300)


def split_of(texts: tuple[str, ...] = TEXTS) -> Split:
    """Return texts whose word labels are the words' positions in the text, up to 6."""
    labels = []
    for text in texts:
        rows, start = [], 0
        for place, word in enumerate(text.split(" ") if text else []):
            if word:
                rows.append((min(place, 6), start, start + len(word)))
            start += len(word) + 1
        labels.append(np.array(rows, np.int32).reshape(-1, 3))
    return Split((list(texts),), of_words(labels))


def encoded(tokenizer: tokenizers.Tokenizer, length: int = 12) -> EncodedWords:
    rows = encode(tokenizer, split_of(), length)
    assert isinstance(rows, EncodedWords)
    return rows


def outputs_of(rows: EncodedWords, windows: np.ndarray) -> np.ndarray:
    """Return [window, length, 3]: each token's window, position and id."""
    batch = collate(rows, windows, 0)["input_ids"]
    window, position = np.meshgrid(windows, np.arange(batch.shape[1]), indexing="ij")
    return np.stack([window, position, batch], axis=2).astype(np.float32)


def everything(rows: EncodedWords, order: np.ndarray) -> np.ndarray:
    return rows.collected((part, outputs_of(rows, part)) for part in np.array_split(order, 3))


def test_outputs_of_tokens_become_those_of_words_whatever_the_order(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    assert len(rows) > len(TEXTS), "the last text has several windows"
    outputs = everything(rows, np.arange(len(rows)))
    assert np.array_equal(outputs, everything(rows, np.arange(len(rows))[::-1]))
    ids = {word: tokenizer.encode(word, add_special_tokens=False).ids[0] for word in ("town", "near", "river", "old")}
    words = [text[start:end] for text, label in zip(TEXTS, split_of().labels, strict=True) for _, start, end in label]
    for word, (_, _, token) in zip(words, outputs, strict=True):
        assert token == ids.get(word, token)


def test_a_word_without_a_token_is_answered_by_the_first_label(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    (lost,) = np.flatnonzero(rows.places.window == NOWHERE)
    assert everything(rows, np.arange(len(rows)))[lost].tolist() == [10, 0, 0]


def test_every_word_is_learnt_once_at_its_token(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    batch = collate(rows, np.arange(len(rows)), 0)
    assert batch["labels"].shape == batch["input_ids"].shape == batch["compared"].shape
    assert np.array_equal(batch["compared"], batch["attention_mask"])
    learnt = batch["labels"][batch["labels"] >= 0]
    known = rows.places.window != NOWHERE
    assert sorted(learnt.tolist()) == sorted(split_labels(rows.labels)[0][known].tolist())
    by_word = collate(rows.compared_by_answers(), np.arange(len(rows)), 0)
    assert np.array_equal(by_word["compared"], batch["labels"] >= 0)
    assert sorted(by_word["words"][by_word["words"] >= 0].tolist()) == np.flatnonzero(known).tolist()


def test_taken_windows_keep_their_words_and_where_texts_begin(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    whole = everything(rows, np.arange(len(rows)))
    chosen = np.array([len(rows) - 1, 0, 2])
    part = rows.take(chosen)
    outputs = everything(part, np.arange(3))
    assert set(outputs[:, 0].astype(int).tolist()) <= {0, 1, 2}
    inside = np.concatenate([np.flatnonzero(rows.places.window == window) for window in chosen])
    assert np.array_equal(outputs[:, 1:], whole[inside][:, 1:])
    ids, begins = split_labels(part.labels)
    assert begins[0] and begins.sum() == 3, "a text begins with each window that is taken apart"
    assert np.array_equal(ids, split_labels(rows.labels)[0][inside])
    every = rows.take(np.arange(len(rows)))
    assert np.array_equal(split_labels(every.labels)[0], split_labels(rows.labels)[0][rows.places.window != NOWHERE])


def test_windows_that_follow_others_keep_their_words(tokenizer: tokenizers.Tokenizer):
    rows = encoded(tokenizer)
    both = rows.concat(rows.take(np.array([0])))
    outputs = everything(both, np.arange(len(both)))
    assert np.array_equal(outputs[: len(rows.labels), 2], everything(rows, np.arange(len(rows)))[:, 2])
    assert np.array_equal(both.labels[len(rows.labels) :], concatenate_labels([np.arange(6)]))


def test_of_words_with_one_token_the_first_is_learnt():
    byte_pairs = tokenizers.Tokenizer(tokenizers.models.WordLevel({"don't": 0, "[UNK]": 1}, unk_token="[UNK]"))
    byte_pairs.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    labels = of_words([np.array([(1, 0, 3), (2, 3, 4), (0, 4, 5)], np.int32)])
    rows = encode(byte_pairs, Split((["don't"],), labels), 8)
    assert collate(rows, np.array([0]), 0)["labels"].tolist() == [[1]]
    assert rows.collected([(np.array([0]), np.full((1, 1, 3), 7, np.float32))]).tolist() == [[7] * 3] * 3


def test_windows_do_not_depend_on_the_side_that_the_tokenizer_cuts_on(tokenizer: tokenizers.Tokenizer) -> None:
    left = tokenizers.Tokenizer.from_str(tokenizer.to_str())
    set_truncation_side(left, "left")
    same, other = encoded(tokenizer), encoded(left)
    assert len(same) > len(TEXTS)
    assert [ids.tolist() for ids in other.input_ids] == [ids.tolist() for ids in same.input_ids]
