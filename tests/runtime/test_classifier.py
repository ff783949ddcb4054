"""Classifier: the same answers as transformers and torch, clear errors, and no heavy imports."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from runtime_toys import LABELS, PAIRS, SINGLES, WORDS, bag, describe, tokenizer_file

from compress.errors import CheckFailed, CompressError
from compress.machine import MOST_THREADS
from compress.runtime import Classifier, load
from compress.runtime.engine import Engine


@pytest.mark.parametrize("family", ["bert", "distilbert"])
@pytest.mark.parametrize("texts", [SINGLES, PAIRS], ids=["single", "pair"])
def test_same_logits_as_transformers_and_torch(
    tiny_checkpoint: Callable[[str], Path], tiny_onnx: Callable[..., Path], tmp_path: Path, family: str, texts: list
) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, BertTokenizer

    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_checkpoint(family) / name).read_bytes())
    (tmp_path / "model.onnx").write_bytes(tiny_onnx(family, "fast").read_bytes())
    tokenizer_file(tmp_path / "tokenizer.json")
    columns = list(zip(*texts, strict=True)) if isinstance(texts[0], tuple) else [texts]
    tokenizer = BertTokenizer.from_pretrained(tmp_path)
    inputs = tokenizer(
        *map(list, columns), truncation="longest_first", max_length=24, padding=True, return_tensors="pt",
        return_token_type_ids=family == "bert",
    )  # fmt: skip
    assert inputs["input_ids"].shape[1] == 24, "the texts reach the model's limit"
    with torch.inference_mode():
        expected = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()(**inputs).logits.numpy()
    model = Classifier(tmp_path, threads=1)
    # fp32 on both sides with another order of summation: the export's own tolerance.
    for options in ({}, {"batch_size": 1}, {"batch_size": 3}, {"tokens": 30}):
        np.testing.assert_allclose(model.logits(texts, **options), expected, atol=1e-4, rtol=1e-4)
    assert np.abs(np.diff(expected, axis=0)).max() > 0.01, "the texts must not all get the same answer"
    best = [LABELS[i] for i in expected.argmax(axis=1)]
    assert [prediction.label for prediction in model.predict(texts)] == best


def test_probabilities_are_the_softmax_of_the_logits(folder: Path) -> None:
    model = Classifier(folder)
    logits = model.logits(SINGLES).astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for prediction, row in zip(model.predict(SINGLES), expected, strict=True):
        np.testing.assert_allclose(list(prediction.scores.values()), row, rtol=1e-9)
        assert tuple(prediction.scores) == LABELS
        assert prediction.label == LABELS[row.argmax()]
        assert prediction.score == max(prediction.scores.values())


def test_huge_logits_do_not_overflow(tmp_path: Path) -> None:
    prediction = Classifier(bag(tmp_path / "x", (1e30, -1e30, 0.0))).predict("word")[0]
    assert (prediction.label, prediction.score) == ("no", 1.0)


def test_a_score_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    model = Classifier(bag(tmp_path / "x", (float("nan"), 0.0, 0.0)))
    with pytest.raises(CheckFailed, match=r"non-finite score for texts\[0\]"):
        model.predict(["word"])


def test_regression_gives_the_output_itself(tmp_path: Path) -> None:
    model = Classifier(bag(tmp_path / "x", (2.5,)))
    prediction = model.predict("word")[0]
    assert prediction.label is None
    assert prediction.scores == {}
    assert prediction.score == float(model.logits("word")[0, 0])


def test_any_number_of_texts_in_their_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Classifier(folder)
    letters = [chr(ord("a") + i % 26) for i in range(200)]
    texts = [" ".join(letters[i : 2 * i % 19 + i + 1]) for i in range(101)]
    one_by_one = np.concatenate([model.logits([text]) for text in texts])
    assert len({tuple(row) for row in one_by_one.round(4)}) > 50
    monkeypatch.setattr("compress.runtime.reading.MOST", 10)
    np.testing.assert_allclose(model.logits(texts, tokens=64), one_by_one, atol=1e-5)
    assert model.logits([]).shape == (0, 3)
    assert model.predict([]) == []
    assert len(model.predict("one text, not a list of letters")) == 1


def test_batches_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Classifier(folder)
    shapes: list[tuple[int, int]] = []
    run = Classifier._run

    def spy(self: Classifier, encodings: list, engine: Engine) -> np.ndarray:
        shapes.append((len(encodings), max(map(len, encodings))))
        return run(self, encodings, engine)

    monkeypatch.setattr(Classifier, "_run", spy)
    model.logits([" ".join(WORDS[: i % 15]) for i in range(50)], batch_size=8, tokens=60)
    assert sum(rows for rows, _ in shapes) == 50
    assert all(rows <= 8 and (rows * length <= 60 or rows == 1) for rows, length in shapes)
    assert len(shapes) < 25, "texts share batches"
    with pytest.raises(CompressError, match="batch_size is 0"):
        model.logits(["x"], batch_size=0)


def test_the_shape_of_the_task_is_kept(folder: Path) -> None:
    describe(folder, text_columns=["premise", "hypothesis"], max_length=24)
    pairs = Classifier(folder)
    with pytest.raises(CompressError, match=r"texts\[1\]: expected a pair \(premise, hypothesis\), found a text"):
        pairs.predict([("a", "b"), "c"])
    with pytest.raises(CompressError, match=r"texts\[0\]\[1\]: expected a text \(hypothesis\), found float"):
        pairs.predict([("a", float("nan"))])  # type: ignore[list-item]
    assert len(pairs.predict(("one", "pair"))) == 1
    assert len(pairs.predict([["a", "list"], ("a", "tuple")])) == 2  # type: ignore[list-item]
    describe(folder, text_columns=["sentence"], max_length=24)
    with pytest.raises(CompressError, match=r"texts\[0\]: expected a text \(sentence\), found a pair"):
        Classifier(folder).predict([("a", "b")])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([1], r"texts\[0\]: expected a text or a pair, found int"),
        (["fine", None], r"texts\[1\]: .* found NoneType"),
        ([("a", "b", "c")], r"texts\[0\]: .* found tuple of 3"),
        (7, "expected texts in a list or a stream, found int"),
        ({"text": "x"}, "expected texts in a list or a stream, found dict"),
        (pd.DataFrame({"text": ["x"]}), "texts: .* found DataFrame of 2 dimensions; give one column, or rows as lists"),
        (np.array([["a", "b"]]), "texts: .* found ndarray of 2 dimensions; give one column, or rows as lists"),
        (np.array("x"), "texts: .* found ndarray of 0 dimensions; give a list"),
        (["fine", "half \ud83d of an emoji"], r"texts\[1\]: expected Unicode text"),
    ],
)
def test_what_is_no_text_is_named(folder: Path, texts: Any, expected: str) -> None:
    with pytest.raises(CompressError, match=expected):
        Classifier(folder).predict(texts)


def test_columns_and_rows_of_a_table_are_read(folder: Path) -> None:
    model, table = Classifier(folder), pd.DataFrame({"one": ["a b", "c"], "two": ["d", "e"]}, index=[7, 3])
    expected = model.predict(["a b", "c"])
    assert model.predict(table["one"]) == model.predict(table["one"].to_numpy()) == expected
    assert model.predict(table.to_numpy().tolist()) == model.predict([("a b", "d"), ("c", "e")])


@pytest.mark.parametrize("number", [0, -1, "2", 1.5, True, float("nan")])
def test_counts_are_whole_numbers_of_at_least_one(folder: Path, number: Any) -> None:
    with pytest.raises(CompressError, match=f"threads is {number!r}; expected at least 1, a whole number"):
        Classifier(folder, threads=number)
    for name in ("batch_size", "tokens"):
        with pytest.raises(CompressError, match=f"{name} is {number!r}; expected at least 1"):
            Classifier(folder).predict(["a text"], **{name: number})


def test_threads_are_limited(folder: Path) -> None:
    with pytest.raises(CompressError, match=f"threads is {MOST_THREADS + 1}; expected at most {MOST_THREADS}"):
        Classifier(folder, threads=MOST_THREADS + 1)


def test_a_copy_for_another_process_opens_the_folder_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    model, texts = Classifier(folder.name, precision="fp32", threads=1), ["a text", "another text"]
    monkeypatch.chdir("/")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(model.predict, texts).result() == model.predict(texts)
    assert copy.deepcopy(model).predict(texts) == model.predict(texts)
    shutil.rmtree(folder)
    with pytest.raises(CompressError, match=f"{folder}: expected a bundle's folder, found nothing"):
        pickle.loads(pickle.dumps(model))


def test_a_folder_may_be_named_from_the_home_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    texts = ["a text"]
    assert Classifier(f"~/{folder.name}").predict(texts) == Classifier(folder).predict(texts)
    assert load(f"~/{folder.name}").folder == folder


def test_a_prediction_imports_nothing_heavy(folder: Path) -> None:
    script = (
        "import sys\n"
        "from compress.runtime import Classifier\n"
        "assert Classifier(sys.argv[1]).predict(['a text'])[0].label\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert {"onnxruntime", "tokenizers", "numpy", "compress"} <= loaded
    heavy = {"torch", "transformers", "datasets", "pandas", "onnx", "pydantic", "rich", "typer", "sklearn", "scipy"}
    assert not loaded & (heavy | {"huggingface_hub", "yaml", "jinja2", "altair", "psutil"})
    assert done.stderr == ""


def test_it_tells_what_it_is(folder: Path) -> None:
    model = Classifier(folder)
    assert repr(model) == (
        f"Classifier({str(folder)!r}, precision={model.precision!r}, runtime='onnxruntime', labels: {', '.join(model.labels)})"
    )
