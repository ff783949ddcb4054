"""The token budget: which is chosen, when it is searched for, how it is remembered, and that none of it can fail."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from compress.runtime import Classifier, budget, remembered
from compress.runtime.budget import BUDGETS, DEFAULT, fastest


def affine(call: float, inside: float, outside: float, cache: int):
    """A model of a machine: a cost for a call, and for each token another one once `cache` is full."""

    def seconds(rows: int, length: int) -> float:
        size = rows * length
        return call + inside * min(size, cache) + outside * max(0, size - cache)

    return seconds


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (affine(call=100, inside=1, outside=1, cache=0), 4096),
        (affine(call=1, inside=1, outside=3, cache=256), 256),
        (affine(call=100, inside=1, outside=4, cache=2048), 2048),
        (affine(call=0, inside=1, outside=1, cache=0), DEFAULT),
        (affine(call=5, inside=1, outside=1, cache=0), DEFAULT),
    ],
    ids=["costly calls", "small cache", "both", "all the same", "hardly better"],
)
def test_the_fastest_by_token_is_chosen(machine, expected: int) -> None:
    assert fastest(machine, longest=512) == expected


def test_one_hiccup_does_not_decide() -> None:
    timed: dict[tuple[int, int], int] = {}

    def seconds(rows: int, length: int) -> float:
        timed[rows, length] = timed.get((rows, length), 0) + 1
        return rows * length * (50.0 if timed[rows, length] == 1 and rows * length <= 1024 else 1.0)

    assert fastest(seconds, longest=512) == DEFAULT


def test_no_sequence_is_longer_than_the_longest_text() -> None:
    lengths = set()

    def seconds(rows: int, length: int) -> float:
        lengths.add(length)
        return float(rows * length)

    fastest(seconds, longest=12)
    assert lengths == {12}


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Due early, and with a known end; says how often it was made."""
    made: list[int] = []
    monkeypatch.setattr(budget, "WORTH", 500)
    monkeypatch.setattr(budget, "NOTICEABLE", 100)

    def search(seconds, longest: int) -> int:
        assert seconds(4, 5) > 0, "it times real runs"
        made.append(longest)
        return 256

    monkeypatch.setattr(budget, "fastest", search)
    return made


TEXTS = ["a b c d e f"] * 50  # 400 tokens


def files(cache: Path) -> list[Path]:
    return sorted((cache / "bert-compress" / "token-budgets").glob("*"))


def test_it_is_searched_for_once_when_it_is_worth_it_and_remembered(
    folder: Path, cache: Path, searches: list[int]
) -> None:
    model = Classifier(folder, threads=1)
    expected = model.predict(TEXTS)
    assert (searches, files(cache)) == ([], []), "400 tokens are not worth it"
    for _ in range(3):
        assert model.predict(TEXTS) == expected
    assert searches == [8]
    (file,) = files(cache)
    document = json.loads(file.read_text())
    assert document["tokens"] == 256
    assert document["for"]["threads"] == 1
    assert document["for"]["runtime"].startswith("onnxruntime ")
    again = Classifier(folder, threads=1)
    again.predict(TEXTS)
    assert again._budget.found == 256
    assert searches == [8]


def test_a_model_that_is_gone_is_answered_without_remembering(folder: Path, cache: Path, searches: list[int]) -> None:
    model = Classifier(folder, threads=1)
    model.model.unlink()
    for _ in range(2):
        assert len(model.predict(TEXTS)) == 50
    assert (searches, files(cache)) == ([8], [])


def test_a_small_window_is_not_run_at_once(folder: Path) -> None:
    """Sorted texts in one run would all be padded to the longest."""
    small = budget.Budget(Classifier(folder)._engine, 1)
    small.found = 4096
    sizes = [small.tokens(list, size) for size in (10, 1024, 8000, 32768, 10**6)]
    assert sizes == [128, 128, 1000, 4096, 4096]


def test_small_calls_read_and_write_nothing(
    folder: Path, cache: Path, searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "identity", lambda *_: pytest.fail("the model file need not be read"))
    model = Classifier(folder)
    for _ in range(200):
        model.predict(["a short text"])
    assert searches == []
    assert not cache.exists()


def test_what_the_caller_says_wins_and_logits_depend_on_the_texts_alone(folder: Path, searches: list[int]) -> None:
    model = Classifier(folder)
    for _ in range(5):
        model.predict(TEXTS, tokens=64)
        model.logits(TEXTS)
    assert searches == []


def test_another_model_thread_count_or_runtime_has_its_own(
    folder: Path, cache: Path, searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(threads: int) -> None:
        model = Classifier(folder, threads=threads)
        model.predict(TEXTS)
        model.predict(TEXTS)

    answer(1)
    answer(2)
    assert len(files(cache)) == 2
    path = folder / "onnx" / "model.onnx"
    path.write_bytes(path.read_bytes() + b"\x4a\x00")  # an empty field more
    answer(1)
    assert len(files(cache)) == 3
    monkeypatch.setattr(remembered, "cpu_name", lambda: "another CPU")
    answer(1)
    assert (len(files(cache)), len(searches)) == (4, 4)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"{", b"[]", b"null", b'{"tokens": 256}', b"[" * 100_000, "tokens: 0", "tokens: 1e9", "other"],
)
def test_a_file_that_is_not_ours_is_searched_for_again_and_replaced(
    folder: Path, cache: Path, searches: list[int], content: bytes | str
) -> None:
    for _ in range(2):
        Classifier(folder).predict(TEXTS * 2)
    assert len(searches) == 1
    (file,) = files(cache)
    good = file.read_text()
    if content == "tokens: 0":
        content = good.replace('"tokens": 256', '"tokens": 0').encode()
    elif content == "tokens: 1e9":
        content = good.replace('"tokens": 256', '"tokens": 1e9').encode()
    elif content == "other":
        content = good.replace('"threads": ', '"threads": 9').encode()
    file.write_bytes(content)  # type: ignore[arg-type]
    Classifier(folder).predict(TEXTS * 2)
    assert len(searches) == 2
    assert file.read_text() == good


def test_a_cache_that_cannot_be_written_is_no_failure(folder: Path, cache: Path, searches: list[int]) -> None:
    cache.write_text("a file where the folder should be")
    model = Classifier(folder)
    model.predict(TEXTS * 2)
    model.predict(TEXTS * 2)
    assert (len(searches), model._budget.found) == (1, 256)
    assert cache.read_text() == "a file where the folder should be"


def test_a_failed_rename_leaves_no_file(folder: Path, cache: Path, searches: list[int]) -> None:
    Classifier(folder).predict(TEXTS * 2)
    (file,) = files(cache)
    file.unlink()
    file.mkdir()
    Classifier(folder).predict(TEXTS * 2)
    assert len(searches) == 2
    assert files(cache) == [file]


@pytest.mark.parametrize("home", ["", "relative/cache"])
def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert remembered.folder() == tmp_path / ".cache" / "bert-compress" / "token-budgets"


def test_without_a_home_nothing_is_remembered(
    folder: Path, searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", none)
    for _ in range(2):
        Classifier(folder).predict(TEXTS * 2)
    assert len(searches) == 2


def test_threads_wait_for_one_search(folder: Path, searches: list[int]) -> None:
    model = Classifier(folder)
    gate = threading.Barrier(4)

    def work(_: int) -> list:
        gate.wait()
        return model.predict(TEXTS * 2)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(work, range(4)))
    assert len(searches) == 1
    assert all(one == answers[0] for one in answers)


def test_a_real_search_changes_no_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "WORTH", 10_000)
    texts = [" ".join(["a", "b", "c"] * (i % 7)) for i in range(3000)]
    model = Classifier(folder, threads=1)
    expected = model.logits(texts)
    found = model.predict(texts)
    assert model._budget.found in BUDGETS
    order = np.array([[one.scores[label] for label in model.labels] for one in found])
    shifted = np.exp(expected - expected.max(axis=1, keepdims=True))
    np.testing.assert_allclose(order, shifted / shifted.sum(axis=1, keepdims=True), rtol=1e-4)
