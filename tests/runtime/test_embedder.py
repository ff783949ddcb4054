"""Embedder: vectors of texts, cosines of pairs, streams, and folders that it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from embedder_toys import WIDTH, averages, expected
from runtime_toys import SINGLES, WORDS, describe, tokenizer_file

from compress.errors import CheckFailed, CompressError
from compress.runtime import Classifier, Embedder, Prediction, Tagger, load

TEXTS = [*SINGLES, *(" ".join(WORDS[: i % 9]) for i in range(30))]
EXACT: dict[str, Any] = {"rtol": 0, "atol": 2e-6}  # float32 sums in another order, for vectors of norm 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return averages(tmp_path / "averages")


def test_vectors_are_those_of_each_text_alone(folder: Path) -> None:
    embedder = Embedder(folder, threads=1)
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), WIDTH)
    np.testing.assert_allclose(vectors, expected(TEXTS), **EXACT)
    for options in ({"batch_size": 1}, {"batch_size": 3}, {"tokens": 30}):
        np.testing.assert_allclose(embedder.embed(TEXTS, **options), vectors, **EXACT)
    np.testing.assert_allclose(list(embedder.vectors(iter(TEXTS), window=5)), vectors, **EXACT)


def test_a_bare_text_and_none(folder: Path) -> None:
    embedder = Embedder(folder)
    assert embedder.embed("a short text").shape == (1, WIDTH)
    assert embedder.embed([]).shape == (0, WIDTH)
    assert list(embedder.vectors([])) == []
    assert np.isfinite(embedder.embed("")).all()


def test_a_pair_is_answered_by_its_cosine(folder: Path) -> None:
    embedder = Embedder(folder)
    pairs = [("a short text", "some words"), ("", "it is cut"), ("more words", "more words")]
    first, second = (embedder.embed([pair[side] for pair in pairs]) for side in (0, 1))
    answers = embedder.predict(pairs)
    assert all(isinstance(answer, Prediction) and answer.label is None for answer in answers)
    np.testing.assert_allclose([answer.score for answer in answers], (first * second).sum(axis=1), **EXACT)  # type: ignore[union-attr]
    assert answers[2].score == pytest.approx(1, abs=1e-6)  # type: ignore[union-attr]


def test_a_cosine_is_never_beyond_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of vectors whose length is 1 up to rounding."""
    model, above = Embedder(folder), np.nextafter(np.eye(1, WIDTH, dtype=np.float32), np.float32(2))
    for second, cosine in ((above, 1), (-above, -1)):
        vectors = np.concatenate([above, second])
        assert abs(float(vectors[0] @ vectors[1])) > 1
        monkeypatch.setattr(model, "_outputs", lambda *_, vectors=vectors: vectors)
        assert [one.score for one in model.predict([("a", "b")])] == [cosine]  # type: ignore[union-attr]


def test_texts_and_pairs_may_come_mixed(folder: Path) -> None:
    embedder = Embedder(folder)
    one, pair, other = embedder.answers(iter(["a text", ("a text", "it"), "it"]))
    np.testing.assert_allclose(one @ other, pair.score, atol=1e-6)  # type: ignore[operator, union-attr]


def test_a_task_of_pairs_does_not_make_texts_wrong(folder: Path) -> None:
    describe(folder, text_columns=["sentence1", "sentence2"], max_length=6, task={"kind": "embedding"})
    embedder = Embedder(folder)
    assert embedder.columns is None
    np.testing.assert_allclose(embedder.embed(TEXTS), expected(TEXTS, limit=6), **EXACT)


def test_the_unpadded_form_answers_padded_batches(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, ...]] = []
    embedder = Embedder(folder, threads=1)
    assert embedder._unpadded is not None
    ask = embedder._unpadded.engine
    monkeypatch.setattr(embedder._unpadded, "engine", lambda lengths: seen.append(tuple(lengths)) or ask(lengths))
    embedder.embed(TEXTS)
    assert any(len(set(lengths)) > 1 for lengths in seen)


def test_vectors_come_while_the_texts_are_read(folder: Path) -> None:
    read = 0

    def texts() -> Iterator[str]:
        nonlocal read
        for number in range(1000):
            read = number + 1
            yield f"text {number}"

    stream = Embedder(folder).vectors(texts(), window=10)
    next(stream)
    assert read == 10


def test_memory_is_bounded(folder: Path) -> None:
    embedder = Embedder(folder, threads=1)

    def peak(count: int) -> int:
        tracemalloc.start()
        for _ in embedder.vectors((" ".join(WORDS[: i % 9]) for i in range(count)), window=64):
            pass
        (_, most), _ = tracemalloc.get_traced_memory(), tracemalloc.stop()
        return most

    peak(64)
    assert peak(3000) < 2 * peak(300)


def test_a_vector_that_is_kept_does_not_keep_its_window(folder: Path) -> None:
    assert all(vector.base is None for vector in Embedder(folder).vectors(TEXTS))


def test_what_is_not_finite_is_named_and_what_came_before_is_given(tmp_path: Path) -> None:
    embedder = Embedder(averages(tmp_path / "infinite", infinite="the"))
    answers = []
    with pytest.raises(CheckFailed, match=r"non-finite number for texts\[2\]"):
        answers.extend(embedder.answers(["fine words", ("it is", "fine"), ("it is", "the"), "a text"]))
    assert len(answers) == 2
    with pytest.raises(CheckFailed, match=r"texts\[1\]"):
        embedder.embed(["fine", "the", "fine"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fine", 3], r"texts\[1\]: expected a text \(text\), found int"),
        (["fine", ("one", "two")], r"texts\[1\]: expected a text \(text\), found a pair"),
        (["half \ud800"], r"texts\[0\]: expected Unicode text"),
        (3, "expected texts in a list or a stream, found int"),
    ],
)
def test_what_is_no_text_is_refused(folder: Path, texts: Any, message: str) -> None:
    with pytest.raises(CompressError, match=message):
        Embedder(folder).embed(texts)


def test_what_is_neither_text_nor_pair_is_refused(folder: Path) -> None:
    with pytest.raises(CompressError, match=r"texts\[0\]: expected a text or a pair, found tuple"):
        Embedder(folder).predict([("one", "two", "three")])  # type: ignore[list-item]


@pytest.mark.parametrize("size", [{"batch_size": 0}, {"tokens": -1}])
def test_sizes_are_checked_at_once(folder: Path, size: dict[str, int]) -> None:
    embedder = Embedder(folder)
    for ask in (embedder.embed, embedder.vectors, embedder.predict):
        with pytest.raises(CompressError, match="expected at least 1"):
            ask([], **size)  # type: ignore[arg-type]


def test_load_takes_the_right_class_and_others_name_it(folder: Path) -> None:
    embedder = load(folder)
    assert isinstance(embedder, Embedder)
    assert embedder.labels == ()
    assert "vectors of 8" in repr(embedder)
    for other in (Classifier, Tagger):
        with pytest.raises(CompressError, match=r"gives texts vectors; open it with compress\.runtime\.Embedder"):
            other(folder)


def test_embedder_refuses_other_models(tmp_path: Path) -> None:
    from runtime_toys import bag
    from tagger_toys import chain

    with pytest.raises(CompressError, match=r"labels texts; open it with compress\.runtime\.Classifier"):
        Embedder(bag(tmp_path / "bag"))
    with pytest.raises(CompressError, match=r"labels the words of texts; open it with compress\.runtime\.Tagger"):
        Embedder(chain(tmp_path / "chain"))


def test_a_class_that_contradicts_the_task_is_refused(folder: Path) -> None:
    describe(folder, task={"kind": "regression"})
    with pytest.raises(
        CompressError, match="architectures: found BertModel, which does not belong to a task of the kind"
    ):
        load(folder)


def test_a_folder_without_a_class_is_what_its_task_says(tmp_path: Path) -> None:
    folder = averages(tmp_path / "averages", architectures=None)
    describe(folder, task={"kind": "embedding"})
    assert isinstance(load(folder), Embedder)


@pytest.mark.parametrize("name", ["hidden_size", "dim", "d_model"])
def test_the_width_stands_under_the_familys_own_name(tmp_path: Path, name: str) -> None:
    folder = averages(tmp_path / "averages", **{"hidden_size": None, name: WIDTH})
    assert Embedder(folder).width == WIDTH


def test_another_width_than_the_graphs_is_refused(tmp_path: Path) -> None:
    folder = averages(tmp_path / "averages", hidden_size=9)
    with pytest.raises(
        CompressError, match=r"expected sentence_embedding \[1, 9\].*found \[1, 8\].*do not belong together"
    ):
        Embedder(folder).embed("a text")


def test_a_graph_that_leaves_pooling_to_others_is_refused(tmp_path: Path) -> None:
    folder = averages(tmp_path / "averages", outputs=("last_hidden_state",))
    with pytest.raises(CompressError, match=r"expected sentence_embedding \[1, 8\]"):
        Embedder(folder).embed("a text")


@pytest.mark.parametrize("size", [None, 0, "8"])
def test_a_config_without_a_width_is_refused(tmp_path: Path, size: Any) -> None:
    with pytest.raises(CompressError, match=r"config\.json: hidden_size: expected"):
        Embedder(averages(tmp_path / "averages", hidden_size=size))


def test_openvino_gives_the_same(folder: Path) -> None:
    pytest.importorskip("openvino")
    vectors = Embedder(folder, runtime="openvino", threads=1).embed(TEXTS)
    np.testing.assert_allclose(vectors, expected(TEXTS), **EXACT)


def test_several_threads_may_ask_one(folder: Path) -> None:
    embedder = Embedder(folder, threads=1)
    whole = embedder.embed(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(embedder.embed, [TEXTS] * 8):
            np.testing.assert_array_equal(vectors, whole)


def test_it_runs_without_torch_and_pydantic(folder: Path) -> None:
    program = (
        "import sys; from compress.runtime import Embedder; print(Embedder(sys.argv[1], threads=1).embed(['a text']).shape);"
        "print([name for name in ('torch', 'transformers', 'onnx', 'pydantic') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["(1, 8)", "[]"]


def test_the_tokenizers_own_padding_is_overridden(tmp_path: Path) -> None:
    """The toy's file has fixed padding, like sentence encoders; without it the test would be vacuous."""
    tokenizer_file(tmp_path / "tokenizer.json")
    assert json.loads((tmp_path / "tokenizer.json").read_text())["padding"]["strategy"] == {"Fixed": 11}
