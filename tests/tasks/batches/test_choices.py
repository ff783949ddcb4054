"""Multiple choice data as tokens: scores by question, batches, and contexts that are cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from choice_files import Row, loaded, rows_of
from tokenizers import Tokenizer

from compress.errors import CompressError
from compress.runtime.passages import NO_SCORE
from compress.tasks import TaskBatches, encode
from compress.tasks.batches.choices import EncodedChoices


def encoded(tokenizer: Tokenizer, rows: list[Row], folder: Path, max_length: int = 24) -> EncodedChoices:
    choices = encode(tokenizer, loaded(folder, rows), max_length)
    assert isinstance(choices, EncodedChoices)
    return choices


def test_scores_come_back_by_question(toy_tokenizer: Tokenizer, tmp_path: Path) -> None:
    choices = encoded(toy_tokenizer, rows_of(3), tmp_path)
    assert choices.labels.tolist() == [0, 1, 0] and len(choices) == 9
    scores = np.arange(9, dtype=np.float32)[:, None]
    order = np.random.default_rng(0).permutation(9)
    outputs = choices.collected((part, scores[part]) for part in np.array_split(order, 4))
    assert outputs.tolist() == [[0, 1, NO_SCORE, NO_SCORE], [2, 3, 4, NO_SCORE], [5, 6, 7, 8]]
    assert choices.by_row(outputs).tolist() == scores.tolist()
    both = choices.concat(choices)
    assert both.labels.tolist() == [0, 1, 0, 0, 1, 0] and len(np.unique(both.pairs[:, 1])) == 6
    taken = both.take(both.stratified_groups(3))
    assert len(taken) in (2, 3, 4) and len(taken.labels) == 1 and taken.pairs[:, 0].sum() == 1


def test_batches_hold_all_endings_of_a_question(toy_tokenizer: Tokenizer, tmp_path: Path) -> None:
    batches = TaskBatches(encoded(toy_tokenizer, rows_of(9), tmp_path), batch_size=6, pad_id=0, seed=0)
    for step in range(len(batches)):
        batch = batches.collate(batches.indices(step))
        for group in np.unique(batch["groups"]):
            assert batch["labels"][batch["groups"] == group].sum() == 1


def test_the_context_is_cut_before_an_ending(toy_tokenizer: Tokenizer, tmp_path: Path) -> None:
    long = "the film is good . " * 20
    rows = [{"context": long, "endings": ["a bad film", "a good film"], "label": 0}]
    choices = encoded(toy_tokenizer, rows, tmp_path, 12)
    first = toy_tokenizer.encode(long, add_special_tokens=False).ids
    for row, ending in enumerate(rows[0]["endings"]):
        own = toy_tokenizer.encode(ending, add_special_tokens=False).ids
        ids = choices.input_ids[row].tolist()
        assert len(ids) == 12 and ids[-1 - len(own) : -1] == own
        assert ids[1 : 12 - 2 - len(own)] == first[: 12 - 3 - len(own)]


def test_endings_that_would_be_alike_are_refused(toy_tokenizer: Tokenizer, tmp_path: Path) -> None:
    rows = [{"context": "c", "endings": ["good " * 30 + "end", "good " * 30 + "bad", "x"], "label": 0}]
    with pytest.raises(
        CompressError, match=r"max_length is 10: two endings of .* characters differ behind the 6 tokens"
    ):
        encoded(toy_tokenizer, rows, tmp_path, 10)
    assert encoded(toy_tokenizer, rows, tmp_path, 200).labels.tolist() == [0]
