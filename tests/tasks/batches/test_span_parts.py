"""A student's windows in its teacher's tokens, and a teacher's answers mapped to the student's tokens."""

from __future__ import annotations

import numpy as np
import pytest
import tokenizers
import torch

from compress.losses.spans import moved_logits, span_kl_loss
from compress.models.features.named import compute_features
from compress.models.random_models import random_classifier
from compress.tasks import (
    EncodedParts,
    EncodedSpans,
    Split,
    byte_level,
    collate,
    encode,
    encode_parts,
    of_words,
    wordpiece,
)

QUESTIONS = ["which river?", "the old town", "small", "what"]
CONTEXTS = [
    "the old river is near  the town",
    "small town near the old river " * 9 + "town",
    "",
    "naïve 😀 rivers, towns",
]


def spans_of(tokenizer: tokenizers.Tokenizer, length: int, rows: tuple[int, ...] = (0, 1, 2, 3)) -> EncodedSpans:
    labels = of_words([np.array([[0, 3]] if CONTEXTS[row] else [], np.int32).reshape(-1, 2) for row in rows])
    texts = [QUESTIONS[row] for row in rows], [CONTEXTS[row] for row in rows]
    windows = encode(tokenizer, Split(texts, labels, unanswerable=True), length)
    assert isinstance(windows, EncodedSpans)
    return windows


@pytest.fixture(scope="module")
def words() -> tokenizers.Tokenizer:
    return wordpiece(300)


@pytest.fixture(scope="module")
def characters() -> tokenizers.Tokenizer:
    return byte_level(400)


def expected_places(windows: EncodedSpans, row: int, spans: list[tuple[int, int]]) -> list[list[int]]:
    """Compute character by character the tokens of these character spans of the context."""
    first, _, _ = windows.cut.readable(row)
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for place, (start, end) in enumerate(windows.cut.offsets(row).tolist()):
        for character in range(start, end):
            begins.setdefault(character, first + place)
            ends[character] = first + place
    return [[begins.get(start, -1), ends.get(end - 1, -1)] if end > start else [-1, -1] for start, end in spans]


@pytest.mark.parametrize("length", [24, 48])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_token_stands_where_its_first_and_last_characters_do(
    words: tokenizers.Tokenizer, characters: tokenizers.Tokenizer, length: int, swapped: bool
) -> None:
    own, other = (characters, words) if swapped else (words, characters)
    windows = spans_of(own, length)
    parts = encode_parts(other, windows, 400)
    assert isinstance(parts, EncodedParts) and len(parts) == len(windows) > len(CONTEXTS)
    for row in range(len(windows)):
        spans, question = windows.cut.offsets(row), windows.question(row)
        start = len(windows.context(row)[: spans[0, 0]].rstrip()) if len(spans) else 0
        part = windows.context(row)[start : spans[-1, 1]] if len(spans) else ""
        read = other.encode(question, part)
        assert parts.input_ids[row].tolist() == read.ids, "the question, and what the window shows"
        of_context = [place for place, text in enumerate(read.sequence_ids) if text == 1]
        shown = [stripped(part, *read.offsets[place], start) for place in of_context]
        assert parts.places[row][of_context].tolist() == expected_places(windows, row, shown)
        rest = np.setdiff1d(np.arange(len(read.ids)), [0, *of_context])
        assert (parts.places[row][rest] == -1).all() and parts.places[row][0].tolist() == [0, 0]


def stripped(part: str, start: int, end: int, before: int) -> tuple[int, int]:
    """Return character offsets in the context, without spaces at the ends."""
    text = part[start:end]
    first = start + len(text) - len(text.lstrip())
    return before + first, before + first + len(text.strip())


def test_what_a_teacher_has_no_room_for_is_left_out(
    words: tokenizers.Tokenizer, characters: tokenizers.Tokenizer
) -> None:
    windows = spans_of(words, 48)
    parts = encode_parts(characters, windows, 20)
    assert max(parts.lengths) == 20 and len(parts) == len(windows)
    batch = collate(parts, np.arange(3), 0)
    assert batch["places"].shape == (3, 20, 2)
    assert (batch["places"][2, parts.lengths[2] :] == -1).all()


def test_it_is_encoded_in_parts_as_at_once(
    words: tokenizers.Tokenizer, characters: tokenizers.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = spans_of(words, 24)
    whole = encode_parts(characters, windows, 60)
    monkeypatch.setattr("compress.tasks.batches.span_parts.ENCODE_AT_ONCE", 2)
    again = encode_parts(characters, windows, 60)
    for name in ("input_ids", "places"):
        assert [row.tolist() for row in getattr(again, name)] == [row.tolist() for row in getattr(whole, name)]


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_a_teacher_that_is_the_student_has_nothing_to_teach(words: tokenizers.Tokenizer, temperature: float) -> None:
    """Also in windows of a long context, except those that start inside a word."""
    windows = spans_of(words, 24)
    parts = encode_parts(words, windows, 24)
    same = [row for row in range(len(windows)) if windows.input_ids[row].tolist() == parts.input_ids[row].tolist()]
    assert len(same) > 5 and set(windows.cut.question[same].tolist()) == {0, 1, 2, 3}
    torch.manual_seed(0)
    config = {"model_type": "bert", "vocab_size": 300, "hidden_size": 16, "num_hidden_layers": 1}
    config |= {
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "initializer_range": 1.0,
    }
    model = random_classifier(config, kind="span", labels=()).eval()
    mine, theirs = (
        {name: torch.from_numpy(array) for name, array in collate(rows, np.array(same), 0).items()}
        for rows in (windows, parts)
    )
    with torch.no_grad():
        student, teacher = (compute_features(model, batch, ("logits",))["logits"] for batch in (mine, theirs))
    moved = moved_logits(teacher, theirs["places"], student.shape[1])
    loss = span_kl_loss(student, moved, mine["compared"], temperature=temperature)
    assert float(loss) == pytest.approx(0, abs=1e-6)
    other = span_kl_loss(student, moved.roll(1, 0), mine["compared"], temperature=temperature)
    assert float(other) > 1e-3
