"""Classifier: the same answers as transformers and torch, clear refusals, and nothing heavy imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from compress.errors import CheckFailed, CompressError
from compress.runtime import Classifier

LABELS = ("no", "maybe", "yes")
WORDS = ["a", "short", "text", "with", "some", "words", "in", "it", ",", "then", "more", "until", "it", "is", "cut"]
SINGLES = [
    "plain words",
    "",
    "Café naïve ÀÉÎ — Straße",
    "emoji 😀🎉 and 雨が降る и ветер",
    " \t tabs\nand\r\nlines ",
    "[SEP] [CLS] [MASK] typed by a user",
    " ".join(WORDS * 50),
    "x" * 3000,
]
PAIRS = [(one, other) for one, other in zip(SINGLES, reversed(SINGLES), strict=True)] + [
    ("", ""),
    ("a", " ".join(WORDS * 9)),
]


def _tokenizer_file(path: Path) -> None:
    """Saved with a fixed padding and a truncation of its own, as sentence encoders are: both must be overridden."""
    from compress.tasks import wordpiece

    tokenizer = wordpiece(120)
    tokenizer.enable_padding(length=11)
    tokenizer.enable_truncation(9)
    tokenizer.save(str(path))


def bag(
    folder: Path,
    logits_bias: tuple[float, ...] = (0.0, 0.0, 0.0),
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
):
    """A folder of a network that is small, instant to make, and gives each text its own logits."""
    rng = np.random.default_rng(0)
    node = helper.make_node
    nodes = [
        node("Gather", ["words", "input_ids"], ["rows"]),
        node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["mask", "last"], ["column"]),
        node("Mul", ["rows", "column"], ["kept"]),
        node("ReduceSum", ["kept", "middle"], ["sum"], keepdims=0),
        node("Add", ["sum", "bias"], ["logits"]),
    ]
    constants = {"words": rng.normal(size=(120, len(logits_bias))).astype(np.float32)}
    constants |= {"bias": np.array(logits_bias, np.float32), "last": np.array([2]), "middle": np.array([1])}
    typed = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(logits_bias)])
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "bag", typed, [output], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (folder / "onnx").mkdir(parents=True)
    onnx.save(model, str(folder / "onnx" / "model.onnx"))
    names = {str(i): LABELS[i] for i in range(len(logits_bias))}
    (folder / "config.json").write_text(
        json.dumps({"id2label": names, "max_position_embeddings": 24, "pad_token_id": 0})
    )
    _tokenizer_file(folder / "tokenizer.json")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return bag(tmp_path / "bag")


def _bundle(folder: Path, **fields: Any) -> None:
    (folder / "bundle.json").write_text(json.dumps(fields))


@pytest.mark.parametrize("family", ["bert", "distilbert"])
@pytest.mark.parametrize("texts", [SINGLES, PAIRS], ids=["single", "pair"])
def test_same_logits_as_transformers_and_torch(
    tiny_checkpoint: Callable[[str], Path], tiny_onnx: Callable[[str], Path], tmp_path: Path, family: str, texts: list
) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, BertTokenizer

    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny_checkpoint(family) / name).read_bytes())
    (tmp_path / "model.onnx").write_bytes(tiny_onnx(family).read_bytes())
    _tokenizer_file(tmp_path / "tokenizer.json")
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
    # fp32 on both sides, in another order of sums: the export's own tolerance.
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
    monkeypatch.setattr("compress.runtime.classifier.WINDOW", 10)
    np.testing.assert_allclose(model.logits(texts, tokens=64), one_by_one, atol=1e-5)
    assert model.logits([]).shape == (0, 3)
    assert model.predict([]) == []
    assert len(model.predict("one text, not a list of letters")) == 1


def test_batches_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Classifier(folder)
    shapes: list[tuple[int, int]] = []
    run = Classifier._run

    def spy(self: Classifier, encodings: list) -> np.ndarray:
        shapes.append((len(encodings), max(map(len, encodings))))
        return run(self, encodings)

    monkeypatch.setattr(Classifier, "_run", spy)
    model.logits([" ".join(WORDS[: i % 15]) for i in range(50)], batch_size=8, tokens=60)
    assert sum(rows for rows, _ in shapes) == 50
    assert all(rows <= 8 and (rows * length <= 60 or rows == 1) for rows, length in shapes)
    assert len(shapes) < 25, "texts share batches"
    with pytest.raises(CompressError, match="batch_size is 0"):
        model.logits(["x"], batch_size=0)


def test_threads_may_share_a_classifier(folder: Path) -> None:
    model = Classifier(folder, threads=1)
    expected = model.logits(SINGLES)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: model.logits(SINGLES), range(32)):
            np.testing.assert_array_equal(found, expected)


def test_the_shape_of_the_task_is_kept(folder: Path) -> None:
    _bundle(folder, text_columns=["premise", "hypothesis"], max_length=24)
    pairs = Classifier(folder)
    with pytest.raises(CompressError, match=r"texts\[1\]: expected a pair \(premise, hypothesis\), found a text"):
        pairs.predict([("a", "b"), "c"])
    assert len(pairs.predict(("one", "pair"))) == 1
    assert len(pairs.predict([["a", "list"], ("a", "tuple")])) == 2  # type: ignore[list-item]
    _bundle(folder, text_columns=["sentence"], max_length=24)
    with pytest.raises(CompressError, match=r"texts\[0\]: expected a text \(sentence\), found a pair"):
        Classifier(folder).predict([("a", "b")])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([1], r"texts\[0\]: expected a text or a pair, found int"),
        (["fine", None], r"texts\[1\]: .* found NoneType"),
        ([("a", "b", "c")], r"texts\[0\]: .* found tuple"),
        (7, "expected a list of texts, found int"),
        (["fine", "half \ud83d of an emoji"], r"texts\[1\]: expected Unicode text"),
    ],
)
def test_what_is_no_text_is_named(folder: Path, texts: Any, expected: str) -> None:
    with pytest.raises(CompressError, match=expected):
        Classifier(folder).predict(texts)


def test_precision_int8_where_there_is_one(folder: Path) -> None:
    assert Classifier(folder).precision == "fp32"
    (folder / "model_quantized.onnx").write_bytes((folder / "onnx" / "model.onnx").read_bytes())
    model = Classifier(folder)
    assert (model.precision, model.model) == ("int8", folder / "model_quantized.onnx"), (
        "optimum puts it beside the config"
    )
    assert Classifier(folder, precision="fp32").model == folder / "onnx" / "model.onnx"
    with pytest.raises(CompressError, match="expected int8 or fp32, found 'int4'"):
        Classifier(folder, precision="int4")


def _write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"config\.json: no such file"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer\.json: no such file"),
        (
            lambda folder: (folder / "onnx" / "model.onnx").unlink(),
            r"expected onnx/model_quantized\.onnx or onnx/model\.onnx",
        ),
        (_write("config.json", "{"), r"config\.json: cannot be read as JSON"),
        (_write("config.json", "[]"), r"config\.json: expected a JSON object, found list"),
        (_write("config.json", '{"id2label": {"0": "a", "2": "b"}}'), "id2label: expected names for the ids 0, 1, 2"),
        (_write("config.json", '{"id2label": {"0": "a", "1": "a"}}'), "id2label: expected different names"),
        (_write("config.json", '{"id2label": {"0": "a", "1": "b"}}'), "do not belong together"),
        (_write("config.json", '{"problem_type": "multi_label_classification"}'), "expected one label per text"),
        (_write("config.json", '{"num_labels": "two"}'), "num_labels: expected a whole number, found 'two'"),
        (
            _write("config.json", '{"num_labels": 3, "pad_token_id": -1}'),
            "pad_token_id: expected a whole number, found -1",
        ),
        (_write("tokenizer.json", "{}"), r"tokenizer\.json: not a tokenizer"),
        (_write("onnx/model.onnx", "not a graph"), r"model\.onnx: not an ONNX file"),
        (_write("bundle.json", '{"max_length": "many"}'), r"bundle\.json: max_length: expected tokens, found 'many'"),
        (_write("bundle.json", '{"max_length": 2}'), "max_length is 2; expected more than the 2 special tokens"),
    ],
)
def test_a_damaged_folder_is_one_line_that_names_the_file(folder: Path, damage: Callable, expected: str) -> None:
    damage(folder)
    with pytest.raises(CompressError, match=expected) as caught:
        Classifier(folder).predict("word")
    assert "\n" not in str(caught.value)
    assert str(folder) in str(caught.value)


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(CompressError, match="expected a bundle's folder, found nothing"):
        Classifier(tmp_path / "none")


def test_a_graph_that_onnxruntime_refuses_prints_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = folder / "onnx" / "model.onnx"
    path.write_bytes(path.read_bytes().replace(b"ReduceSum", b"Reduce\xb2um"))
    with pytest.raises(CompressError, match="ONNX Runtime cannot load it"):
        Classifier(folder)
    assert capfd.readouterr() == ("", "")


def test_a_graph_with_other_inputs_is_refused(tmp_path: Path) -> None:
    folder = bag(tmp_path / "x", inputs=("input_ids", "attention_mask", "pixel_values"))
    with pytest.raises(CompressError, match="found pixel_values"):
        Classifier(folder)


def test_texts_are_cut_to_the_tightest_limit_that_the_folder_names(folder: Path) -> None:
    long, cut = " ".join(["a"] * 500), " ".join(["a"] * 22)
    model = Classifier(folder)
    np.testing.assert_array_equal(model.logits(long), model.logits(cut))
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 10}')
    assert Classifier(folder).settings.max_length == 10
    _bundle(folder, max_length=7)
    assert Classifier(folder).settings.max_length == 7
    (folder / "bundle.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 1e30}')
    assert Classifier(folder).settings.max_length == 24


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
