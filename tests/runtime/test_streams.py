"""`classify`: in order, as the texts come, in bounded memory, from several threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from runtime_toys import SINGLES, WORDS, bag

from compress.errors import CheckFailed, CompressError
from compress.runtime import Classifier, Prediction
from compress.runtime.batches import tokens_per_run
from compress.runtime.reading import TextReader


def ragged(count: int) -> Iterator[str]:
    """Yield texts of 0 to 20 words; neighbours differ in length and words."""
    for number in range(count):
        yield " ".join(chr(ord("a") + (number + i) % 26) for i in range(number * 7 % 21))


def alone(model: Classifier, texts: list[str]) -> list[Prediction]:
    return [model.predict([text])[0] for text in texts]


def same(actual: list[Prediction], expected: list[Prediction]) -> None:
    assert [one.label for one in actual] == [one.label for one in expected]
    np.testing.assert_allclose([one.score for one in actual], [one.score for one in expected], rtol=1e-5)


def test_a_stream_gets_the_answers_of_a_list_in_its_order(folder: Path) -> None:
    model = Classifier(folder)
    expected = alone(model, list(ragged(300)))
    assert len({round(one.score, 5) for one in expected}) > 40
    same(list(model.classify(ragged(300))), expected)
    same(list(model.classify(ragged(300), window=7, tokens=40, batch_size=3)), expected)
    same(model.predict(ragged(300)), expected)


def test_answers_come_before_the_stream_is_read_to_its_end(folder: Path) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for read in range(1, 1 << 30):  # noqa: B007
            yield "a word"

    answers = Classifier(folder).classify(endless())
    assert read == 0, "nothing is read before the first answer is asked for"
    next(answers)
    assert read == 256
    for _ in range(256):
        next(answers)
    assert read == 256 + 512
    one_by_one = Classifier(folder).classify(endless(), window=1)
    next(one_by_one)
    assert read == 1


def test_windows_grow_to_their_bounds() -> None:
    reader = TextReader(None)
    assert [len(window) for window in reader.windows(iter(["x"] * 12000))] == [256, 512, 1024, 2048, 4096, 4064]
    assert [len(window) for window in reader.windows(["x"] * 9000)] == [4096, 4096, 808], "a list is all there"
    long = "x" * 300_000
    assert [len(window) for window in reader.windows([long] * 9)] == [4, 4, 1], "a million characters close one"


def test_nothing_gives_nothing(folder: Path) -> None:
    model = Classifier(folder)
    assert list(model.classify([])) == list(model.classify(iter(()))) == model.predict([]) == []
    assert [one.label for one in model.classify("")] == [one.label for one in model.predict([""])]


def collected(answers: Iterator[Prediction], error: type[Exception], match: str) -> int:
    """Return the number of answers before the error."""
    before_error = []
    with pytest.raises(error, match=match):
        for answer in answers:
            before_error.append(answer)
    return len(before_error)


@pytest.mark.parametrize("bad", [0, 5, 256, 700])
def test_an_error_comes_after_what_was_before_it_is_answered(folder: Path, bad: int) -> None:
    model = Classifier(folder)
    texts: list = list(ragged(900))
    texts[bad] = 7
    assert collected(model.classify(iter(texts)), CompressError, rf"^texts\[{bad}\]: .* found int$") == bad
    texts[bad] = "half \ud83d"
    assert collected(model.classify(texts), CompressError, rf"^texts\[{bad}\]: expected Unicode") == bad

    def failing() -> Iterator[str]:
        yield from ragged(bad)
        raise ConnectionError("the line is cut")

    assert collected(model.classify(failing()), ConnectionError, "the line is cut") == bad


def test_a_score_that_is_not_finite_ends_the_stream_there(tmp_path: Path) -> None:
    model = Classifier(bag(tmp_path / "x", infinite="z"))
    texts = ["fine"] * 300 + ["z"] + ["fine"] * 99
    assert collected(model.classify(iter(texts)), CheckFailed, r"non-finite score for texts\[300\]") == 300


@pytest.mark.parametrize("option", ["batch_size", "tokens", "window"])
def test_sizes_are_checked_at_the_call(folder: Path, option: str) -> None:
    with pytest.raises(CompressError, match=f"{option} is 0; expected at least 1"):
        Classifier(folder).classify(["x"], **{option: 0})


def test_threads_may_share_a_classifier(folder: Path) -> None:
    model = Classifier(folder, threads=1)
    expected = model.logits(SINGLES)
    streamed = [one.score for one in model.classify(ragged(600), tokens=256)]

    def work(number: int) -> tuple[np.ndarray, list[float]]:
        return model.logits(SINGLES), [one.score for one in model.classify(ragged(600), tokens=256)]

    with ThreadPoolExecutor(8) as pool:
        for logits, scores in pool.map(work, range(16)):
            np.testing.assert_array_equal(logits, expected)
            assert scores == streamed


@pytest.mark.slow
def test_many_ragged_texts_in_bounded_memory(folder: Path) -> None:
    """Runs in its own process, whose peak is this work's need: twice as many texts need no more."""
    script = (
        "import sys\n"
        "from compress.bench.child import peak_memory_bytes\n"
        "from compress.runtime import Classifier\n"
        "model = Classifier(sys.argv[1], threads=1)\n"
        "texts = lambda n: (' '.join(['word'] * (i * 31 % 30)) for i in range(n))\n"
        "for n in (20_000, 20_000):\n"
        "    assert sum(1 for _ in model.classify(texts(n), tokens=1024)) == n\n"
        "    print(peak_memory_bytes())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    first, second = map(int, done.stdout.split())
    assert second < 1.05 * first, f"{first:,} bytes for 20,000 texts, {second:,} after as many more"


def test_a_stream_that_is_left_leaves_nothing_behind(folder: Path) -> None:
    closed = []

    def source() -> Iterator[str]:
        try:
            yield from [" ".join(WORDS)] * 10_000
        finally:
            closed.append(True)

    answers = Classifier(folder).classify(source())
    next(answers)
    del answers
    assert closed == [True]


def test_logits_are_of_the_texts_alone_however_they_come(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, texts, batches = Classifier(folder, threads=1), list(ragged(700)), []
    ran = model._run
    monkeypatch.setattr(
        model, "_run", lambda encodings, engine: batches.append(len(encodings)) or ran(encodings, engine)
    )
    model.logits(texts)
    as_list = list(batches)
    batches.clear()
    model.logits(iter(texts))
    assert batches == as_list


def test_a_small_window_is_not_run_at_once() -> None:
    """Sorted texts in one run would all be padded to the longest."""
    assert [tokens_per_run(size) for size in (10, 1024, 3000, 4096, 10**6)] == [128, 128, 375, 512, 512]
