"""Tagger: words and entities with their places in a text, long texts in windows, streams."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from runtime_toys import SINGLES, WORDS
from tagger_toys import SAYS, chain

from compress.errors import CheckFailed, CompressError
from compress.runtime import Entity, Tagger
from compress.runtime.engine import Engine
from compress.runtime.kinds.classification import softmax
from compress.runtime.tagger import Aggregation

ENTITIES = "so the guy in , so in that , the the"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return chain(tmp_path / "chain", says=SAYS, scale=0.1)


def ragged(count: int) -> Iterator[str]:
    """Yield texts of 0 to 40 words, many longer than the model's limit."""
    for number in range(count):
        yield " ".join(chr(ord("a") + (number + i) % 26) for i in range(number * 7 % 41))


def texts_and_labels(answers: list[Entity]) -> list[tuple[str, str]]:
    return [(entity.text, entity.label) for entity in answers]


def test_the_unpadded_form_answers_padded_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`UnpaddedForm` decides; this test checks that windows of different lengths are passed to it."""
    seen: list[tuple[int, ...]] = []
    tagger = Tagger(folder, threads=1)
    assert tagger._unpadded is not None
    ask = tagger._unpadded.engine
    monkeypatch.setattr(tagger._unpadded, "engine", lambda lengths: seen.append(tuple(lengths)) or ask(lengths))
    tagger.logits(list(ragged(20)))
    assert any(len(set(lengths)) > 1 for lengths in seen)


def test_entities_stand_where_they_are_in_the_text(folder: Path) -> None:
    tagger = Tagger(folder)
    (entities,) = tagger.tag(ENTITIES)
    assert texts_and_labels(entities) == [
        ("the guy", "PER"),
        ("in", "LOC"),
        ("in that", "LOC"),
        ("the", "PER"),
        ("the", "PER"),
    ]
    assert all(ENTITIES[one.start : one.end] == one.text for one in entities)
    assert [one.start for one in entities] == [3, 11, 19, 29, 33]
    (alone,) = tagger.tag(ENTITIES, aggregation="none")
    assert texts_and_labels(alone)[:4] == [("the", "B-PER"), ("guy", "I-PER"), ("in", "B-LOC"), ("in", "B-LOC")]
    assert entities[0].score == pytest.approx((alone[0].score + alone[1].score) / 2)


def test_scores_are_the_softmax_of_the_logits(folder: Path) -> None:
    tagger = Tagger(folder)
    text = " ".join(WORDS)
    best = softmax(tagger.logits(text)).max(axis=1)
    labels = tagger.logits(text).argmax(axis=1)
    (entities,) = tagger.tag(text, aggregation="none")
    np.testing.assert_allclose([one.score for one in entities], best[labels != 0], rtol=1e-9)


def test_a_text_may_be_a_list_of_words(folder: Path) -> None:
    tagger = Tagger(folder)
    words = ["so", "the", "guy", ",", "so.me", "in that", "\u200d", "the"]
    (spans,) = tagger.words([words])
    joined = " ".join(words)
    assert [joined[start:end] for start, end in spans] == words
    assert tagger.logits([words]).shape == (8, 5)
    (entities,) = tagger.tag([words])
    assert all(joined[one.start : one.end] == one.text for one in entities)
    assert ("the guy", "PER") in texts_and_labels(entities)
    assert ("in that", "LOC") in texts_and_labels(entities)
    assert tagger.predict([tuple(words), joined])[0] == entities


def test_one_row_for_each_word_of_all_texts(folder: Path) -> None:
    tagger = Tagger(folder, threads=1)
    texts = [*SINGLES, *ragged(60)]
    words = tagger.words(texts)
    assert [len(spans) for spans in words][1] == 0
    logits = tagger.logits(texts, tokens=100)
    assert (logits.dtype, logits.shape) == (np.float32, (sum(map(len, words)), 5))
    alone = np.concatenate([tagger.logits([text], batch_size=1) for text in texts])
    np.testing.assert_allclose(logits, alone, atol=1e-5)
    assert tagger.logits([]).shape == (0, 5)
    assert tagger.predict([]) == []
    assert tagger.predict(["", " \n"]) == [[], []]


def test_a_word_that_no_token_stands_for_is_outside(folder: Path, tmp_path: Path) -> None:
    tagger = Tagger(folder)
    np.testing.assert_array_equal(tagger.logits([["the", "\u0301"]])[1], [10, 0, 0, 0, 0])
    np.testing.assert_array_equal(tagger.logits([["\u0301"]]), [[10, 0, 0, 0, 0]])
    parts = Tagger(chain(tmp_path / "parts", labels=("ADJ", "NOUN", "X")))
    np.testing.assert_array_equal(parts.logits([["\u0301"]]), [[10, 0, 0]])


def test_a_long_text_is_answered_as_in_one_piece(folder: Path, tmp_path: Path) -> None:
    """The toy looks one token back, and each word's window has at least that."""
    long = " ".join(WORDS[i % 13] for i in range(400))
    config = json.loads((folder / "config.json").read_text())
    whole = Tagger(folder)
    pieces = whole.logits(long)
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 5000}))
    np.testing.assert_allclose(pieces, Tagger(folder).logits(long), atol=1e-6)
    assert whole.settings.max_length == 24
    assert len(set(pieces.argmax(axis=1))) > 2


def test_parts_of_speech_are_one_answer_per_word(tmp_path: Path) -> None:
    tagger = Tagger(chain(tmp_path / "x", labels=("ADJ", "NOUN", "VERB"), says={"the": "NOUN", "guy": "NOUN"}))
    for aggregation in get_args(Aggregation):
        (entities,) = tagger.tag("the guy the", aggregation=aggregation)
        assert texts_and_labels(entities) == [("the", "NOUN"), ("guy", "NOUN"), ("the", "NOUN")]


def test_other_schemes_of_prefixes(tmp_path: Path) -> None:
    names = ("O", "S-A", "B-A", "I-A", "E-A", "PLAIN")
    says = {"s": "S-A", "b": "B-A", "i": "I-A", "e": "E-A", "p": "PLAIN", "o": "O"}
    tagger = Tagger(chain(tmp_path / "x", labels=names, says=says, scale=0.01))
    for text, expected in {
        "b i e e": ["b i e", "e"],
        "s s i": ["s", "s", "i"],
        "i i o i": ["i i", "i"],
        "p p b p": ["p p", "b", "p"],
        "b b": ["b", "b"],
    }.items():
        assert [one.text for one in tagger.predict(text)[0]] == expected, text


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["fine", 7], r"texts\[1\]: expected a text or a list of words, found int"),
        ([["fine", 7]], r"texts\[0\]\[1\]: expected a word of the text, found int"),
        ([["fine", ""]], r"texts\[0\]\[1\]: expected a word of the text, found an empty one"),
        ([["half \ud83d"]], r"texts\[0\]: expected Unicode text"),
        (["half \ud83d"], r"texts\[0\]: expected Unicode text"),
    ],
)
def test_what_is_no_text_is_named_after_what_was_before_it(folder: Path, texts: Any, expected: str) -> None:
    answers = Tagger(folder).tag(texts)
    if isinstance(texts, list) and texts[0] == "fine":
        next(answers)
    with pytest.raises(CompressError, match=expected):
        next(answers)


@pytest.mark.parametrize("name", ["simple", "MAX", ""])
def test_other_aggregations_are_refused_at_the_call(folder: Path, name: Any) -> None:
    with pytest.raises(CompressError, match=f"aggregation: expected first, average, max or none, found '{name}'"):
        Tagger(folder).tag("a", aggregation=name)


def test_a_score_that_is_not_finite_ends_the_stream_there(tmp_path: Path) -> None:
    answers = Tagger(chain(tmp_path / "x", infinite="z")).tag(iter(["fine"] * 300 + ["a z"] + ["fine"]))
    with pytest.raises(CheckFailed, match=r"non-finite score for texts\[300\]"):
        for _ in range(400):
            next(answers)


def test_a_stream_is_answered_while_it_is_read(folder: Path) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for read in range(1, 1 << 30):  # noqa: B007
            yield "the guy"

    answers = Tagger(folder).tag(endless(), window=3)
    assert read == 0
    assert texts_and_labels(next(answers)) == [("the guy", "PER")]
    assert read == 3
    with pytest.raises(CompressError, match="expected texts in a list or a stream, found int"):
        Tagger(folder).tag(7)  # type: ignore[arg-type]
    with pytest.raises(CompressError, match="window is 0; expected at least 1"):
        Tagger(folder).tag(["x"], window=0)


def test_threads_may_share_it(folder: Path) -> None:
    tagger, texts = Tagger(folder, threads=1), list(ragged(60))
    expected = tagger.predict(texts)
    with ThreadPoolExecutor(8) as pool:
        for answers in pool.map(lambda _: tagger.predict(texts), range(16)):
            assert answers == expected


def test_the_same_answers_in_openvino(folder: Path) -> None:
    texts = [*SINGLES, ENTITIES]
    other = Tagger(folder, runtime="openvino", threads=1)
    np.testing.assert_allclose(other.logits(texts), Tagger(folder).logits(texts), rtol=1e-4, atol=1e-4)


def test_runs_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = Tagger(folder, threads=1)
    shapes: list[tuple[int, int]] = []
    ran = tagger._run

    def spy(encodings: list, engine: Engine) -> np.ndarray:
        shapes.append((len(encodings), max(map(len, encodings))))
        return ran(encodings, engine)

    monkeypatch.setattr(tagger, "_run", spy)
    tagger.logits(["word " * 5000, "", "a"], tokens=100, batch_size=3)
    assert all(rows <= 3 and rows * length <= 100 for rows, length in shapes)
    assert len(shapes) > 5000 / 100


@pytest.mark.slow
def test_a_text_of_a_hundred_thousand_words_in_bounded_memory(folder: Path) -> None:
    """Runs in its own process: its encodings need some 0.9 kB per word, and a second text needs no more."""
    script = (
        "import sys\n"
        "from compress.bench.child import peak_memory_bytes\n"
        "from compress.runtime import Tagger\n"
        "tagger = Tagger(sys.argv[1], threads=1)\n"
        "tagger.predict('a word')\n"
        "print(peak_memory_bytes())\n"
        "text = 'the guy so ' * 33_334\n"
        "for _ in range(3):\n"
        "    assert len(next(tagger.tag([text]))) == 33_334\n"
        "    print(peak_memory_bytes())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    before, first, _, third = map(int, done.stdout.split())
    assert first - before < 200e6, f"{first - before:,} bytes for 100,000 words"
    assert third < 1.1 * first
