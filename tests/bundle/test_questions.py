"""A question answering bundle: its probe, its verification, its card and its files for servers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from onnx import numpy_helper
from reader_toys import finder

from compress.bundle import BundleInfo, read_bundle
from compress.bundle.document import Probe
from compress.bundle.graph_files import graph_file
from compress.bundle.probes import QUESTIONS, probe_logits, probe_rows, probe_texts
from compress.bundle.shipping.card import render
from compress.bundle.shipping.triton import _config
from compress.bundle.tolerance import compare_with_record, distance, recorded_outputs
from compress.bundle.verifying.answers import answer_steps
from compress.bundle.verifying.report import check
from compress.errors import CheckFailed, CompressError
from compress.graphs.model_files import get_metadata, set_metadata
from compress.runtime import Reader
from compress.runtime.batches import pad_batch
from compress.runtime.engine import OnnxRuntime

TEXTS = probe_texts(2, unit="question")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    reader_folder = finder(tmp_path / "finder", max_length=48)
    path = reader_folder / "onnx" / "model.onnx"
    model = onnx.load(path)
    set_metadata(model, {"labels": json.dumps(["start", "end"])})
    onnx.save(model, path)
    (reader_folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 48}))
    return reader_folder


@pytest.fixture
def info(folder: Path, bundle_of: Callable[[str], Path]) -> BundleInfo:
    """Return the record that ship would write: another bundle's, with the fields of a question answering task."""
    other = read_bundle(bundle_of("toy-entailment"))
    task = other.task.model_copy(
        update={"kind": "span", "labels": ("start", "end"), "metrics": ("exact_match", "f1_span"), "name": "pages"}
    )
    scores = {"dev": {"exact_match": 70.0, "f1_span": 81.25}}
    fp32 = other.models["fp32"].model_copy(update={"scores": scores})
    return other.model_copy(
        update={
            "task": task,
            "labels": ("start", "end"),
            "text_columns": ("question", "context"),
            "max_length": 48,
            "models": {"fp32": fp32},
            "graphs": {"fp32": graph_file(folder, "fp32")},
            "baseline": fp32,
            "probe": Probe(texts=TEXTS, logits={"fp32": probe_logits(folder, "fp32", TEXTS, threads=1).tolist()}),
        }
    )


def checks(folder: Path, info: BundleInfo) -> dict[str, tuple[bool, str]]:
    outcomes = [check(step.name, step.detail) for step in answer_steps(folder, info)]
    return {one.name: (one.passed, one.detail) for one in outcomes}


def test_the_probe_has_questions_contexts_and_a_context_of_several_windows(folder: Path) -> None:
    assert len(TEXTS) == len(QUESTIONS) == 16
    rows = probe_rows(folder, TEXTS)
    assert rows.cut is not None
    assert np.bincount(rows.cut.question).max() > 5
    big = max(len(context.split()) for _, context in TEXTS)
    assert big > 512  # more than a window of any model here


def test_rows_one_by_one_give_what_the_reader_gives(folder: Path) -> None:
    """The unpadded form and the simulation of other CPUs run rows one by one."""
    rows, engine = probe_rows(folder, TEXTS), OnnxRuntime(folder / "onnx" / "model.onnx", 1)
    outputs = [engine.run(pad_batch([one, one], engine.inputs, 0))[1] for one in rows.encodings]
    expected = probe_logits(folder, "fp32", TEXTS, threads=1)
    np.testing.assert_array_equal(rows.collected(outputs), expected)
    pairs = [(question, context) for question, context in TEXTS]
    np.testing.assert_array_equal(Reader(folder, threads=1).outputs(pairs, impossible=True), expected)
    assert ((expected[:, 3] > expected[:, 2]) == (expected[:, 1] == 0)).all()
    assert 2 < (expected[:, 1] > 0).sum() < 16


def test_a_sound_bundle_passes(folder: Path, info: BundleInfo) -> None:
    """The tolerance is a share of the largest score; an empty context's score, which is not a real one, is ignored."""
    largest = recorded_outputs(info, "fp32")[:, 2:].max()
    assert 20 < largest < 40
    expected = f"largest difference 0 (at most {5e-4 * largest:.2g}), answers changed 0 of 16"
    assert checks(folder, info) == {
        "labels": (True, "start, end"),
        "settings": (True, "at most 48 tokens"),
        "no answer": (True, "null_score_diff_threshold 0"),
        "probe fp32": (True, expected),
    }


def test_other_weights_are_seen(folder: Path, info: BundleInfo) -> None:
    path = folder / "onnx" / "model.onnx"
    model = onnx.load(path)
    (words,) = (tensor for tensor in model.graph.initializer if tensor.name == "words")
    words.CopyFrom(numpy_helper.from_array(1.01 * numpy_helper.to_array(words), "words"))
    onnx.save(model, path)
    passed, detail = checks(folder, info)["probe fp32"]
    assert not passed
    assert "this CPU does not compute what the bundle's record says" in detail


def with_threshold(folder: Path, threshold: float, *, graph: float | None = None) -> None:
    """Set the threshold in config.json and in the graph's metadata, with `graph` there if given."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"null_score_diff_threshold": threshold}))
    path = folder / "onnx" / "model.onnx"
    model = onnx.load(path)
    known = {"null_score_diff_threshold": str(threshold if graph is None else graph)}
    set_metadata(model, get_metadata(model) | known)
    onnx.save(model, path)


def test_a_bundle_answers_by_its_threshold(folder: Path, info: BundleInfo) -> None:
    """So do the reader, the probe and the rows one by one; a bundle without a threshold answers as with 0."""
    before = probe_logits(folder, "fp32", TEXTS, threads=1)
    margins = before[:, 3] - before[:, 2]
    readable = before[:, 2] > -1e8
    threshold = float(np.quantile(margins[readable], 0.25))
    with_threshold(folder, threshold)
    after = probe_logits(folder, "fp32", TEXTS, threads=1)
    np.testing.assert_allclose(after[:, 3], before[:, 3] - threshold, rtol=1e-6)
    assert ((after[:, 1] == 0) == (margins > threshold)).all() and (after[:, 1] == 0).sum() != (before[:, 1] == 0).sum()
    rows, engine = probe_rows(folder, TEXTS), OnnxRuntime(folder / "onnx" / "model.onnx", 1)
    outputs = [engine.run(pad_batch([one, one], engine.inputs, 0))[1] for one in rows.encodings]
    np.testing.assert_array_equal(rows.collected(outputs), after)
    reader = Reader(folder, threads=1)
    answers = list(reader.answers([(question, context) for question, context in TEXTS], impossible=True))
    assert [answer.answer == "" for answer in answers] == (after[:, 1] == 0).tolist()
    shipped = info.model_copy(
        update={"null_score_diff_threshold": threshold, "probe": Probe(texts=TEXTS, logits={"fp32": after.tolist()})}
    )
    assert all(passed for passed, _ in checks(folder, shipped).values())
    assert f"more than {threshold:.2f} above the best span's" in render(shipped)


def test_files_that_disagree_on_the_threshold_are_seen(folder: Path, info: BundleInfo) -> None:
    with_threshold(folder, 1.5, graph=1.25)
    said = info.model_copy(update={"null_score_diff_threshold": 1.5})
    assert checks(folder, said)["no answer"] == (
        False,
        "onnx/model.onnx has null_score_diff_threshold 1.25, bundle.json 1.5",
    )
    assert checks(folder, info)["no answer"] == (
        False,
        "config.json has null_score_diff_threshold 1.5, bundle.json 0",
    )


def test_files_that_disagree_on_questions_without_an_answer_are_seen(folder: Path, info: BundleInfo) -> None:
    """A bundle made before config.json said so has none to compare."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"unanswerable": True}))
    right, wrong = (
        info.model_copy(update={"task": info.task.model_copy(update={"unanswerable": known})})
        for known in (True, False)
    )
    assert checks(folder, right)["settings"][0]
    assert checks(folder, wrong)["settings"] == (
        False,
        "config.json: unanswerable: expected False, as bundle.json has it; found True",
    )


@pytest.mark.parametrize("value", ["high", True, 1e9])
def test_a_threshold_that_is_none_is_refused(folder: Path, value: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"null_score_diff_threshold": value}))
    with pytest.raises(CompressError, match=r"config\.json: null_score_diff_threshold: expected a number from"):
        Reader(folder)


def test_places_of_answers_are_no_quantities(info: BundleInfo) -> None:
    """A few of a quantized model's answers may be elsewhere, however far; the tolerance is that of the scores."""
    own = recorded_outputs(info, "fp32").astype(np.float32)
    both = info.model_copy(
        update={
            "models": {"fp32": info.models["fp32"], "int8": info.models["fp32"]},
            "probe": Probe(texts=TEXTS, logits={"fp32": own.tolist(), "int8": own.tolist()}),
        }
    )
    answered = np.flatnonzero(own[:, 2] >= own[:, 3])  # the others have no answer, and so no place
    assert len(answered) >= 5
    for count, near in ((4, True), (5, False)):
        outputs = own.copy()
        outputs[answered[:count], :2] += 300
        detail, passed = distance(both, "int8", outputs, own)
        assert (detail.split(",")[1], passed) == (f" answers changed {count} of 16", near)
    outputs = own.copy()
    outputs[3, 2] += 100
    assert not distance(both, "int8", outputs, own)[1]
    assert not distance(both, "fp32", np.concatenate([own[:, :2] + 1, own[:, 2:]], axis=1), own)[1]


def test_a_record_of_another_shape_is_refused(info: BundleInfo) -> None:
    short = info.model_copy(update={"probe": Probe(texts=TEXTS, logits={"fp32": [[1.0, 2.0]] * 16})})  # type: ignore[arg-type]
    with pytest.raises(CheckFailed, match="expected one row per question, start, end, score and none"):
        compare_with_record(short, "fp32", np.zeros((16, 4)))


def test_the_card_says_what_it_is(info: BundleInfo) -> None:
    card = render(info)
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["pipeline_tag"] == "question-answering"
    assert list(front["widget"][0]) == ["text", "context"]
    assert [each["name"] for each in front["model-index"][0]["results"][0]["metrics"]] == ["Exact match", "Answer F1"]
    assert "ORTModelForQuestionAnswering" in card
    assert "(start, end)" not in card
    assert "two texts (question, context)" in card


def test_the_programs_of_the_card_answer(tmp_path: Path, info: BundleInfo) -> None:
    """Both print from the best start to the best end. The toy's vocabulary has the first letter of Paris, and "in"."""
    says = {"p": (30.0, 0.0), "in": (0.0, 30.0)}
    folder = finder(tmp_path / "x", says=says, max_length=96)
    first, second, *_ = render(info.model_copy(update={"max_length": 96})).split("```python\n")[1:]
    printed = []
    for program in (first, second):
        done = subprocess.run(
            [sys.executable, "-c", program.split("```")[0]], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.strip())
    assert printed[0] == "Paris in"
    assert printed[1].startswith("[Answer(answer='Paris in', score=")


def test_the_program_of_the_card_reads_any_question_and_context(tmp_path: Path, info: BundleInfo) -> None:
    """A question that is longer than what the model reads, and a context without a word."""
    folder = finder(tmp_path / "x", says={"p": (30.0, 0.0), "in": (0.0, 30.0)}, max_length=96)
    program = render(info.model_copy(update={"max_length": 96})).split("```python\n")[1].split("```")[0]
    long = "where is it " * 200
    texts = [(long, "Paris in spring"), (long, "in Paris " * 200), ("where", ""), (long, "")]
    program, count = re.subn(r"^texts = .*$", lambda _: f"texts = {texts!r}", program, flags=re.MULTILINE)
    assert count == 1
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    first, second, *empty = done.stdout.split("\n")
    assert first.startswith("Paris in")
    assert second
    assert empty == ["", "", ""]


@pytest.mark.parametrize(
    ("threshold", "expected"), [(None, ["Paris", "no answer", "no answer"]), (-1e4, ["no answer"] * 3)]
)
def test_the_program_of_the_card_gives_no_answer_where_the_runtime_gives_none(
    tmp_path: Path, info: BundleInfo, threshold: float | None, expected: list[str]
) -> None:
    folder = finder(tmp_path / "x", says={"p": (30.0, 0.0), "##s": (0.0, 30.0), "[CLS]": (20.0, 20.0)}, max_length=96)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"null_score_diff_threshold": threshold}))
    task = info.task.model_copy(update={"unanswerable": True})
    program = render(info.model_copy(update={"max_length": 96, "task": task})).split("```python\n")[1].split("```")[0]
    texts = [("where is it", "Paris"), ("where is it", "in it"), ("where", "")]
    program, count = re.subn(r"^texts = .*$", lambda _: f"texts = {texts!r}", program, flags=re.MULTILINE)
    assert count == 1
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
    answers = [one.answer or "no answer" for one in Reader(folder).predict(texts, impossible=True)]
    assert answers == expected


def test_a_server_gets_both_outputs_and_no_file_of_labels(folder: Path, info: BundleInfo) -> None:
    text = _config("x", info, "fp32", folder / "onnx" / "model.onnx")
    for name in ("start_logits", "end_logits"):
        assert f'name: "{name}" data_type: TYPE_FP32 dims: [ -1 ]' in text
    assert "labels.txt" not in text


def test_labels_in_another_order_are_seen(folder: Path, info: BundleInfo, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"id2label": {"0": "end", "1": "start"}}))
    passed, detail = checks(copy, info)["labels"]
    assert not passed
    assert detail == "config.json has ['end', 'start'], bundle.json ['start', 'end']"
