"""Copies of examples: how many words change, to what, and what never changes."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from augment_texts import CONTENT, sentences
from tokenizers import Tokenizer

from compress.augment import (
    Augmented,
    MaskedLmProposer,
    NeighbourProposer,
    Proposers,
    augment,
    read_augmented,
    write_augmented,
)
from compress.augment.words import content_words
from compress.errors import CompressError
from compress.tasks import Split

SETTINGS: dict[str, Any] = {"copies": 6, "probability": 0.4, "candidates": 5, "seed": 1}


@pytest.fixture(scope="module")
def neighbours(tokenizer: Tokenizer) -> Proposers:
    table = np.random.default_rng(2).normal(size=(tokenizer.get_vocab_size(), 16)).astype(np.float32)
    return Proposers(None, NeighbourProposer(table, tokenizer))


@pytest.fixture(scope="module")
def both(tokenizer: Tokenizer, model: Any, neighbours: Proposers) -> Proposers:
    return Proposers(MaskedLmProposer(model, tokenizer), neighbours.others)


def split_of(*columns: list[str]) -> Split:
    return Split(columns, np.arange(len(columns[0]), dtype=np.int64) % 2)


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in content_words(text)]


def skeleton(text: str) -> str:
    """Return the text with a dot in place of every content word."""
    for start, end in reversed(content_words(text)):
        text = text[:start] + "·" + text[end:]
    return text


@pytest.fixture(scope="module")
def split_and_copies(tokenizer: Tokenizer, both: Proposers) -> tuple[Split, Augmented]:
    split = split_of(sentences(30, 20))
    return split, augment(split, tokenizer=tokenizer, proposers=both, **SETTINGS)


def pairs_of_words(split: Split, augmented: Augmented) -> list[tuple[str, str]]:
    """Return (word, its replacement in the copy) for every word of every copy."""
    rows = zip(augmented.source, augmented.split.texts[0], strict=True)
    return [pair for source, copy in rows for pair in zip(words(split.texts[0][source]), words(copy), strict=True)]


def test_words_are_replaced_as_often_as_asked(split_and_copies: tuple[Split, Augmented]):
    """Within five standard deviations of a binomial; every word has candidates, and is not its own candidate."""
    split, augmented = split_and_copies
    assert len(augmented.source) == 180
    pairs = [pair for pair in pairs_of_words(split, augmented) if pair[0] in CONTENT]
    changed = sum(word != copy for word, copy in pairs)
    assert len(pairs) == 180 * 20
    assert abs(changed - 0.4 * len(pairs)) < 5 * math.sqrt(len(pairs) * 0.4 * 0.6)


def test_candidates_are_drawn_evenly(tokenizer: Tokenizer, neighbours: Proposers):
    split = split_of([" ".join(["good"] * 24)])
    augmented = augment(
        split, tokenizer=tokenizer, proposers=neighbours, copies=60, probability=1.0, candidates=5, seed=0
    )
    counts = Counter(copy for _, copy in pairs_of_words(split, augmented))
    total = 60 * 24
    assert set(counts.values()) and len(counts) == 5
    assert "good" not in counts
    assert all(abs(count - total / 5) < 5 * math.sqrt(total * 0.2 * 0.8) for count in counts.values())


def test_everything_but_the_words_stays(split_and_copies: tuple[Split, Augmented]):
    split, augmented = split_and_copies
    for source, copy in zip(augmented.source, augmented.split.texts[0], strict=True):
        assert skeleton(copy) == skeleton(split.texts[0][source])
        assert copy != split.texts[0][source]


def test_replacements_are_whole_words_of_the_vocabulary(split_and_copies: tuple[Split, Augmented]):
    split, augmented = split_and_copies
    new = {copy for word, copy in pairs_of_words(split, augmented) if word != copy}
    assert new <= set(CONTENT)
    assert len(new) > 10


def test_labels_and_sources_are_those_of_the_rows_copied(split_and_copies: tuple[Split, Augmented]):
    split, augmented = split_and_copies
    assert augmented.source.dtype == np.int64
    np.testing.assert_array_equal(augmented.source, np.repeat(np.arange(30), 6))
    np.testing.assert_array_equal(augmented.split.labels, split.labels[augmented.source])
    assert augmented.split.labels.dtype == split.labels.dtype


def test_both_texts_of_a_pair_change(tokenizer: Tokenizer, both: Proposers):
    split = split_of(sentences(10, 10), sentences(10, 8, seed=3))
    augmented = augment(split, tokenizer=tokenizer, proposers=both, **SETTINGS)
    changed = [
        [copy != split.texts[column][source] for source, copy in zip(augmented.source, texts, strict=True)]
        for column, texts in enumerate(augmented.split.texts)
    ]
    assert all(np.mean(side) > 0.9 for side in changed)


def test_the_same_text_on_both_sides_of_a_pair(tokenizer: Tokenizer, both: Proposers):
    """A word gets candidates if the draws of either side replace it."""
    split = split_of(sentences(4, 6), sentences(4, 6))
    few: dict[str, Any] = {**SETTINGS, "copies": 1}
    augmented = augment(split, tokenizer=tokenizer, proposers=both, **few)
    changed = [
        word != copy
        for column, texts in enumerate(augmented.split.texts)
        for source, text in zip(augmented.source, texts, strict=True)
        for word, copy in zip(words(split.texts[column][source]), words(text), strict=True)
        if word in CONTENT
    ]
    assert abs(sum(changed) - 0.4 * 48) < 5 * math.sqrt(48 * 0.24)


def test_the_result_is_the_same_every_time_and_another_with_another_seed(
    tokenizer: Tokenizer, both: Proposers, split_and_copies: tuple[Split, Augmented]
):
    split, first = split_and_copies
    again = augment(split, tokenizer=tokenizer, proposers=both, **SETTINGS)
    assert again.split.texts == first.split.texts
    other = augment(split, tokenizer=tokenizer, proposers=both, **{**SETTINGS, "seed": 2})
    assert other.split.texts != first.split.texts


def test_an_examples_copies_do_not_depend_on_those_after_it(tokenizer: Tokenizer, neighbours: Proposers):
    texts = sentences(8, 10)
    few, many = (
        augment(split_of(texts[:count]), tokenizer=tokenizer, proposers=neighbours, **SETTINGS) for count in (3, 8)
    )
    assert many.split.texts[0][: len(few.source)] == few.split.texts[0]


def test_copies_that_are_not_new_are_dropped(tokenizer: Tokenizer, neighbours: Proposers):
    split = split_of(["good", "the 7", "It is a film"])
    augmented = augment(
        split, tokenizer=tokenizer, proposers=neighbours, copies=50, probability=0.5, candidates=3, seed=0
    )
    assert Counter(augmented.source.tolist()) == {0: 3, 2: 3}
    assert len(set(augmented.split.texts[0])) == 6
    assert "good" not in augmented.split.texts[0]


def test_words_of_several_tokens_are_left_without_a_second_source(tokenizer: Tokenizer, both: Proposers):
    split = split_of(["good filmy zebras", "bad goodly river"])
    alone = Proposers(both.masked_lm, None)
    augmented = augment(split, tokenizer=tokenizer, proposers=alone, **SETTINGS)
    assert all(re.search("filmy zebras|goodly", text) for text in augmented.split.texts[0])


def test_a_masked_language_model_is_given_its_own_tokens(
    tokenizer: Tokenizer, both: Proposers, split_and_copies: tuple[Split, Augmented]
):
    """Whatever the student's tokenizer."""
    from tokenizers import models

    other = Tokenizer(models.WordPiece(vocab={"[UNK]": 0, "film": 1}, unk_token="[UNK]"))
    again = augment(split_and_copies[0], tokenizer=other, proposers=both, **SETTINGS)
    assert again.split.texts == split_and_copies[1].split.texts


def test_only_words_that_some_copy_replaces_are_asked_for(
    tokenizer: Tokenizer, model: Any, monkeypatch: pytest.MonkeyPatch
):
    slot_counts: list[int] = []
    proposer = MaskedLmProposer(model, tokenizer)
    whole = proposer.propose
    monkeypatch.setattr(proposer, "propose", lambda slots, *rest: slot_counts.append(len(slots)) or whole(slots, *rest))
    split = split_of(sentences(20, 20))
    for probability in (0.1, 1.0):
        augment(
            split,
            tokenizer=tokenizer,
            proposers=Proposers(proposer, None),
            copies=1,
            probability=probability,
            candidates=3,
            seed=0,
        )
    assert slot_counts[1] == 400
    assert abs(slot_counts[0] - 40) < 5 * math.sqrt(400 * 0.09)


@pytest.mark.parametrize("changes", [{"copies": 0}, {"candidates": 0}, {"probability": 0.0}, {"probability": 1.5}])
def test_settings_out_of_range_are_refused(tokenizer: Tokenizer, neighbours: Proposers, changes: dict[str, Any]):
    with pytest.raises(CompressError):
        augment(split_of(["good"]), tokenizer=tokenizer, proposers=neighbours, **{**SETTINGS, **changes})


def test_nothing_to_propose_with_or_to_replace_is_said(tokenizer: Tokenizer, neighbours: Proposers):
    with pytest.raises(CompressError, match="needs a source"):
        augment(split_of(["good"]), tokenizer=tokenizer, proposers=Proposers(None, None), **SETTINGS)
    with pytest.raises(CompressError, match=r"made no new example: no word was replaced, .*--set augment"):
        augment(split_of(["the 7", "фильм"]), tokenizer=tokenizer, proposers=neighbours, **SETTINGS)


@pytest.mark.parametrize("labels", [np.array([0, 1, 1], np.int64), np.array([0.1, 3.0, 4.6], np.float32)])
def test_what_is_written_is_read_back(tmp_path: Path, labels: np.ndarray):
    texts = (['a "b"\t c\\', "é 😀", "line\nbreak"], ["", "x", "y"])
    write_augmented(Augmented(Split(texts, labels), np.array([0, 0, 4])), tmp_path / "out")
    again = read_augmented(tmp_path / "out")
    assert again.texts == texts
    assert again.labels.dtype == labels.dtype
    np.testing.assert_array_equal(again.labels, labels)
    lines = (tmp_path / "out" / "augmented.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[2])["source"] == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ('{"texts": ["a"], "label": 0, "source": 0}\n{"texts": ["a"\n', ":2: not an augmented example"),
        ('{"texts": ["a"], "label": 0}\n{"texts": ["a", "b"], "label": 0}\n', ":2: not an augmented example"),
        ("[]\n", ":1: not an augmented example"),
    ],
)
def test_a_file_that_is_none_names_its_line(tmp_path: Path, text: str, message: str):
    (tmp_path / "augmented.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(CompressError) as caught:
        read_augmented(tmp_path)
    assert message in str(caught.value)


def test_a_folder_without_augmented_examples_is_said(tmp_path: Path):
    with pytest.raises(CompressError, match=r"augmented\.jsonl"):
        read_augmented(tmp_path)
