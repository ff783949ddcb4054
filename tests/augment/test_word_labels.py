"""Copies of texts with word labels: labels stay with their words, and entities are unchanged."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from compress.augment import read_augmented, write_augmented
from compress.augment.candidates import Proposers
from compress.augment.copies import augment
from compress.tasks import Split, of_words, wordpiece


class Longer:
    """A proposer of words with another length than the replaced ones."""

    vocabulary = ("extraordinary", "if")

    def propose(self, words: list[str], count: int) -> np.ndarray:
        return np.tile(np.arange(2, dtype=np.int32), (len(words), 1))[:, :count]


TEXT = "Anna reads good books near Zürich-City , Anna laughs"
WORDS = TEXT.split(" ")
IDS = [1, 0, 0, 0, 0, 3, 0, 1, 0]  # O, B-PER, I-PER, B-LOC


def labelled() -> Split:
    starts = np.cumsum([0, *(len(word) + 1 for word in WORDS)])[:-1]
    rows = [(label, start, start + len(word)) for label, start, word in zip(IDS, starts, WORDS, strict=True)]
    return Split(([TEXT, ""],), of_words([np.array(rows, np.int32), np.zeros((0, 3), np.int32)]))


def copied(outside: int | None) -> Split:
    proposers = Proposers(None, Longer())  # type: ignore[arg-type]
    how = {"copies": 8, "probability": 0.8, "candidates": 2, "seed": 0, "outside": outside}
    return augment(labelled(), tokenizer=wordpiece(300), proposers=proposers, **how).split  # type: ignore[arg-type]


def test_labels_stand_where_the_words_do():
    split = copied(None)
    assert len(split) > 4 and all(text != TEXT for text in split.texts[0])
    for text, label in zip(split.texts[0], split.labels, strict=True):
        assert [text[start:end] for _, start, end in label.tolist()] == text.split(" ")
        assert label[:, 0].tolist() == IDS


def test_words_of_entities_are_kept():
    free = {text.split(" ")[place] for text in copied(None).texts[0] for place in (0, 5, 7)}
    assert free - {"Anna", "Zürich-City"}
    for text in copied(0).texts[0]:
        assert [text.split(" ")[place] for place in (0, 5, 7)] == ["Anna", "Zürich-City", "Anna"]


def test_a_file_has_them_again(tmp_path: Path):
    from compress.augment.copies import Augmented

    split = labelled()
    write_augmented(Augmented(split, np.arange(2)), tmp_path)
    again = read_augmented(tmp_path)
    assert again.texts == split.texts and again.labels_words
    assert all(np.array_equal(mine, own) for mine, own in zip(again.labels, split.labels, strict=True))
