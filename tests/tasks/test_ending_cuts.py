"""Truncation of endings, and the question that copies of endings belong to."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer

from compress.errors import CompressError
from compress.runtime.endings import EndingCutter
from compress.tasks import TASK_KINDS, Split, encode
from compress.tokenization.truncation import set_truncation_side


def test_an_ending_is_cut_only_where_it_alone_is_too_long(toy_tokenizer: Tokenizer) -> None:
    cutter = EndingCutter(toy_tokenizer, 10)
    encodings, cut = cutter([("the film", "good " * 30), ("", "bad"), ("film " * 40, "")])
    assert cut == [0] and [len(each) for each in encodings] == [
        10,
        3 + len(toy_tokenizer.encode("bad", add_special_tokens=False)),
        10,
    ]
    assert encodings[0].sequence_ids.count(0) == 1


@pytest.mark.parametrize("endings", [["a b c d", "a b c d e"], ["A b c d e", "a b c d f"]])
def test_endings_that_are_cut_to_the_same_tokens_are_told(toy_tokenizer: Tokenizer, endings: list[str]) -> None:
    """Also if one of them is complete, or they differ in letters that the tokenizer treats as equal."""
    cutter = EndingCutter(toy_tokenizer, 8)
    assert cutter([("film", ending) for ending in endings])[1]
    with pytest.raises(CompressError, match=r"here: two endings of [79] and 9 characters"):
        cutter.check_distinct("here: ", endings)
    cutter.check_distinct("here: ", ["Yes", "yes"])  # not truncated


def test_copies_of_a_question_are_questions() -> None:
    labels = np.array([[0, 4], [1, 4], [1, 7], [0, 7]])
    copied = TASK_KINDS["choice"].labels.copied(labels, np.array([0, 0, 1, 1, 2, 3]), np.array([0, 1, 0, 1, 0, 0]))
    assert copied[:, 0].tolist() == [0, 0, 1, 1, 1, 0]
    assert (
        len({tuple(copied[[0, 2], 1]), tuple(copied[[1, 3], 1])}) == 2
        and copied[0, 1] == copied[2, 1]
        and copied[4, 1] == copied[5, 1]
    )
    assert not set(copied[:, 1]) & {4, 7}


def test_a_context_is_cut_on_the_tokenizers_side(toy_tokenizer: Tokenizer) -> None:
    left = Tokenizer.from_str(toy_tokenizer.to_str())
    set_truncation_side(left, "left")
    pair = ("good " * 30 + "film", "bad")
    kept = left.encode("film", "bad").ids
    split = Split(([pair[0]], [pair[1]]), np.array([[1, 0]]))
    ids = encode(left, split, 10).input_ids[0].tolist()
    assert len(ids) == 10 and ids[-len(kept) + 1 :] == kept[1:]
    assert encode(toy_tokenizer, split, 10).input_ids[0].tolist() != ids
