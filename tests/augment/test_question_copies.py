"""Copies of questions about texts: only the question changes, and answers keep their places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compress.augment import read_augmented, write_augmented
from compress.augment.candidates import Proposers
from compress.augment.copies import Augmented, augment
from compress.errors import CompressError
from compress.tasks import Split, of_words, wordpiece

CONTEXT = "Anna reads good books near Zürich , Anna laughs"
QUESTIONS = ["Where does Anna read books ?", "Who laughs ?", ""]
ANSWERS = [[(27, 33)], [(0, 4), (36, 40)], []]


class Longer:
    """A proposer of words with another length than the replaced ones."""

    vocabulary = ("extraordinary", "if")

    def propose(self, words: list[str], count: int) -> np.ndarray:
        return np.tile(np.arange(2, dtype=np.int32), (len(words), 1))[:, :count]


@pytest.fixture(scope="module")
def copies() -> Augmented:
    labels = of_words([np.array(spans, np.int32).reshape(-1, 2) for spans in ANSWERS])
    split = Split((QUESTIONS, [CONTEXT] * 3), labels)
    proposers = Proposers(None, Longer())  # type: ignore[arg-type]
    how = {"copies": 8, "probability": 0.8, "candidates": 2, "seed": 0}
    return augment(split, tokenizer=wordpiece(300), proposers=proposers, **how)  # type: ignore[arg-type]


def test_the_question_alone_is_rewritten(copies: Augmented) -> None:
    assert set(copies.source.tolist()) == {0, 1}
    assert set(copies.split.texts[1]) == {CONTEXT}
    for question, source, spans in zip(copies.split.texts[0], copies.source, copies.split.labels, strict=True):
        assert question != QUESTIONS[source]
        assert spans.tolist() == [list(span) for span in ANSWERS[source]]


def test_a_file_has_them_again(copies: Augmented, tmp_path: Path) -> None:
    write_augmented(copies, tmp_path)
    again = read_augmented(tmp_path)
    assert again.texts == tuple(list(column) for column in copies.split.texts) and again.labels_spans
    assert [spans.tolist() for spans in again.labels] == [spans.tolist() for spans in copies.split.labels]


def test_a_line_without_an_answer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "augmented.jsonl").write_text('{"texts": ["a", "b"], "source": 0}\n')
    with pytest.raises(CompressError, match=r"augmented.jsonl:1"):
        read_augmented(tmp_path)
