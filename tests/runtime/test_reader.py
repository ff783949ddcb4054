"""Reader: the best span of a context over all its windows, for streams and for one question."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from reader_toys import SAYS, finder, rows
from runtime_toys import SINGLES, describe

from compress.errors import CheckFailed, CompressError
from compress.runtime import Answer, Reader
from compress.runtime.passages import NO_SCORE
from compress.tasks import wordpiece

PAIR = ("who is it", "so it is the guy in that text")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return finder(tmp_path / "finder")


def pairs(count: int) -> Iterator[tuple[str, str]]:
    """Yield questions with contexts of 0 to 80 words, many longer than the model's limit; some questions are unusual."""
    for number in range(count):
        words = [chr(ord("a") + (number * i) % 26) for i in range(number * 7 % 81)]
        yield SINGLES[number % len(SINGLES)], " ".join(words)


def expected(question: str, context: str) -> tuple[tuple[int, int] | None, float, float]:
    """Return (place, score, none) from the table of logits and the whole context's tokens: windows change nothing if a token's logits do
    not depend on its context."""
    own, table = wordpiece(120), rows(SAYS, 0.1)
    encoding = own.encode(context, add_special_tokens=False)
    best: tuple[float, tuple[int, int] | None] = NO_SCORE, None
    for first in range(len(encoding)):
        for last in range(first, min(first + 30, len(encoding))):
            score = table[encoding.ids[first], 0] + table[encoding.ids[last], 1]
            if score > best[0]:
                best = score, (encoding.offsets[first][0], encoding.offsets[last][1])
    return best[1], float(best[0]), float(table[own.token_to_id("[CLS]")].sum())


def test_an_answer(folder: Path) -> None:
    answer = Reader(folder, threads=1).answer(*PAIR)
    assert (answer.answer, answer.start, answer.end) == ("the guy", 9, 16)
    assert PAIR[1][answer.start : answer.end] == answer.answer
    assert 0.99 < answer.score <= 1


def test_answers_are_those_of_a_plain_search_whatever_the_windows_and_batches(tmp_path: Path) -> None:
    """Answers have at most as many tokens as two windows share, so that one window contains them; longer ones may be in no small window."""
    reader = Reader(finder(tmp_path / "x", max_length=200), threads=1)
    examples = [
        *pairs(60),
        PAIR,
        ("", "the guy"),
        ("x " * 90, "so the guy in"),
        ("who", "a " * 300 + "the guy , " + "b " * 300),
    ]
    outputs = reader.outputs(examples, impossible=False)
    assert outputs.dtype == np.float32
    raw = reader.outputs(examples, impossible=True)
    for pair, row, other in zip(examples, outputs, raw, strict=True):
        place, score, none = expected(*pair)
        assert (row[0], row[1]) == (place or (0, 0)), pair
        np.testing.assert_allclose(row[2:], [score, NO_SCORE], rtol=1e-6)
        assert other[3] == np.float32(none)
        assert tuple(other[:2]) == ((0, 0) if none > score else tuple(row[:2]))
    for options in ({"batch_size": 1}, {"tokens": 30}, {"batch_size": 3, "tokens": 900}):
        np.testing.assert_array_equal(reader.outputs(examples, impossible=False, **options), outputs)
    assert (raw[:, 3] > raw[:, 2]).any()


def test_each_is_answered_alone_and_in_a_stream_as_together(folder: Path) -> None:
    reader, examples = Reader(folder, threads=1), [*pairs(30), PAIR]
    together = reader.predict(examples)
    assert list(reader.answers(iter(examples), window=4)) == together
    assert [reader.answer(*pair) for pair in examples] == together
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda pair: reader.answer(*pair), examples)) == together
    assert list(reader.answers(PAIR)) == [together[-1]]
    assert list(reader.answers([])) == []
    assert reader.outputs([]).shape == (0, 4)


def test_the_best_few(folder: Path) -> None:
    reader = Reader(folder, threads=1)
    best = reader.answer(*PAIR, n=4)
    assert [one.answer for one in best][:2] == ["the guy", "the guy in"]
    assert [one.score for one in best] == sorted((one.score for one in best), reverse=True)
    assert best[0] == reader.answer(*PAIR)
    assert len(reader.answer("who", "guy", n=5)) == 1
    assert sum(one.score for one in reader.answer(*PAIR, n=20)) == pytest.approx(1)
    for wrong in (0, 21):
        with pytest.raises(CompressError, match=f"n is {wrong}; expected at"):
            reader.answer(*PAIR, n=wrong)


def test_a_question_without_an_answer(folder: Path) -> None:
    """[CLS] has 10, every span of words that are not named less."""
    reader, plain = Reader(folder, threads=1), ("who", "a short text")
    assert reader.answer(*plain).answer != ""
    none = reader.answer(*plain, impossible=True)
    assert (none.answer, none.start, none.end) == ("", 0, 0)
    assert none.score > 0.9
    assert reader.answer(*PAIR, impossible=True).answer == "the guy"
    assert reader.predict([plain, PAIR], impossible=True) == [none, reader.answer(*PAIR, impossible=True)]
    several = reader.answer(*plain, impossible=True, n=3)
    assert several[0] == none
    assert all(one.answer for one in several[1:])
    for context in ("", " \t\n"):
        assert reader.answer("who", context) == Answer("", 0.0, 0, 0)
        assert reader.answer("who", context, impossible=True) == Answer("", 1.0, 0, 0)


def test_the_bundle_says_whether_there_may_be_none(folder: Path) -> None:
    plain = ("who", "a short text")
    for said in (True, False):
        describe(folder, task={"kind": "span", "unanswerable": said}, text_columns=["q", "c"], max_length=24)
        assert (Reader(folder).answer(*plain).answer == "") == said
        assert (Reader(folder).outputs([plain])[0, 3] == np.float32(NO_SCORE)) != said
        assert Reader(folder).answer(*plain, impossible=not said).answer != Reader(folder).answer(*plain).answer


@pytest.mark.parametrize("swapped", [True, False])
def test_outputs_are_found_by_name(tmp_path: Path, swapped: bool) -> None:
    assert Reader(finder(tmp_path / "x", swapped=swapped)).answer(*PAIR).answer == "the guy"


def test_openvino_answers_the_same(folder: Path) -> None:
    pytest.importorskip("openvino")
    examples = [*pairs(20), PAIR]
    expected = Reader(folder, threads=1).outputs(examples, impossible=True)
    np.testing.assert_allclose(
        Reader(folder, runtime="openvino").outputs(examples, impossible=True), expected, rtol=1e-5
    )


def test_what_is_no_pair_is_named_after_what_was_before(folder: Path) -> None:
    answers = Reader(folder, threads=1).answers(iter([PAIR, ("only one",)]))  # type: ignore[arg-type]
    assert next(answers).answer == "the guy"
    with pytest.raises(CompressError, match=r"pairs\[1\]: expected a pair \(question, context\), found tuple"):
        next(answers)
    with pytest.raises(CompressError, match=r"pairs\[0\]: expected a pair \(question, context\), found a text"):
        Reader(folder).predict("a question")  # type: ignore[arg-type]
    with pytest.raises(CompressError, match="pairs: expected pairs in a list or a stream, found int"):
        Reader(folder).predict(7)  # type: ignore[arg-type]
    with pytest.raises(CompressError, match=r"pairs\[0\]: expected Unicode text, found half of a surrogate pair"):
        Reader(folder).answer("a", "\ud800")


def test_a_context_whose_places_float32_cannot_hold_is_refused(folder: Path) -> None:
    with pytest.raises(CompressError, match=r"pairs\[0\]: 16,777,216 characters of context; expected less than"):
        Reader(folder).answer("a", "a" * (1 << 24))


def test_a_score_that_is_not_finite_ends_the_answers(tmp_path: Path) -> None:
    reader = Reader(finder(tmp_path / "x", says=SAYS | {"that": (np.inf, 0.0)}), threads=1)
    answers = reader.answers([("a", "the guy"), ("a", "that")])
    assert next(answers).answer == "the guy"
    with pytest.raises(CheckFailed, match=r"model\.onnx: gives a non-finite score for pairs\[1\]"):
        next(answers)


def test_a_hundred_thousand_words_in_bounded_memory(folder: Path) -> None:
    """Only one run's logits, and the tokens of each window's Encoding, are in memory: no table of windows times length."""
    script = (
        "import resource, sys\n"
        "from compress.runtime import Reader\n"
        "reader = Reader(sys.argv[1], threads=1)\n"
        "reader.answer('who', 'a b')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "words = ['a'] * 100_000\n"
        "words[66_666:66_668] = ['the', 'guy']\n"
        "best = reader.answer('who is it', ' '.join(words))\n"
        "print(best.answer, best.start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 384}))
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    *answer, start, grown = done.stdout.split()
    assert answer == ["the", "guy"]
    assert int(start) == 2 * 66_666
    assert int(grown) < 250, "MiB"
