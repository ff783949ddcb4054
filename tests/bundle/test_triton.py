"""The model repository is readable by Triton Inference Server, and its graph answers like the bundle."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from bundle_making import Run
from google.protobuf import text_format
from recipe_runs import compress
from triton_schema import model_config

from compress.bundle import checked_model_folder, ship, write_triton_model
from compress.errors import CompressError
from compress.runtime import Classifier

DOCUMENT = Path(__file__).parents[2] / "docs" / "bundle.md"


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _config(place: Path) -> Any:
    return text_format.Parse((place / "config.pbtxt").read_text(), model_config())


def _refused(bundle: Path, repository: Path, *, force: bool = False) -> str:
    before = _files(repository)
    with pytest.raises(CompressError) as caught:
        write_triton_model(bundle, repository, force=force)
    assert "\n" not in str(caught.value)
    assert _files(repository) == before
    return str(caught.value)


def test_the_schema_refuses_what_triton_would() -> None:
    for wrong in ("max_batch: 1", "input [ { data_type: TYPE_LONG } ]", "instance_group [ { kind: CPU } ]", "name: 3"):
        with pytest.raises(text_format.ParseError):
            text_format.Parse(wrong, model_config())


def test_the_config_is_a_model_config(bundle: Path, tmp_path: Path) -> None:
    place = write_triton_model(bundle, tmp_path / "models")
    assert place == tmp_path / "models" / "copy"
    assert _files(place).keys() == {"config.pbtxt", "labels.txt", "1/model.onnx"}
    config = _config(place)
    assert (config.name, config.backend, config.max_batch_size) == ("copy", "onnxruntime", 32)
    int64, fp32 = 9, 11
    assert [(one.name, one.data_type, [*one.dims]) for one in config.input] == [
        ("input_ids", int64, [-1]),
        ("attention_mask", int64, [-1]),
    ]
    assert [(one.name, one.data_type, [*one.dims], one.label_filename) for one in config.output] == [
        ("logits", fp32, [2], "labels.txt")
    ]
    assert [(group.kind, group.count) for group in config.instance_group] == [(2, 1)]
    assert config.HasField("dynamic_batching")
    assert {key: value.string_value for key, value in config.parameters.items()} == {"intra_op_thread_count": "1"}
    assert (place / "labels.txt").read_text() == "negative\npositive\n"


@pytest.mark.parametrize("task", ["toy-sentiment", "toy-entailment", "toy-similarity"])
def test_inputs_and_outputs_are_the_graphs(bundle_of: Callable[[str], Path], tmp_path: Path, task: str) -> None:
    place = write_triton_model(bundle_of(task), tmp_path)
    config, session = _config(place), onnxruntime.InferenceSession(place / "1" / "model.onnx")
    for side, values in ((config.input, session.get_inputs()), (config.output, session.get_outputs())):
        assert [one.name for one in side] == [value.name for value in values]
        assert [[*one.dims] for one in side] == [
            [-1 if isinstance(size, str) else size for size in value.shape[1:]] for value in values
        ]
    labels = (place / "labels.txt").read_text().splitlines() if (place / "labels.txt").exists() else []
    assert len(labels) == (0 if task == "toy-similarity" else config.output[0].dims[0])
    assert bool(config.output[0].label_filename) == bool(labels)


def test_the_graph_is_what_the_bundle_is_opened_with(run: Run, bundle: Path, tmp_path: Path) -> None:
    place = write_triton_model(bundle, tmp_path / "models")
    assert (place / "1" / "model.onnx").read_bytes() == (bundle / "onnx" / "model_quantized.onnx").read_bytes()
    assert (place / "config.pbtxt").read_text().splitlines()[0] == (
        "# Written by `compress ship`: int8 of bag-toy-sentiment-0. It needs ONNX Runtime 1.17 or later."
    )
    fp32 = ship(run.folder, tmp_path / "fp32", store=run.store, precisions=["fp32"])
    place = write_triton_model(fp32, tmp_path / "models")
    assert (place / "1" / "model.onnx").read_bytes() == (fp32 / "onnx" / "model.onnx").read_bytes()


def test_force_replaces_what_was_written_before_and_nothing_else(bundle: Path, tmp_path: Path) -> None:
    place = write_triton_model(bundle, tmp_path / "models")
    assert "expected an empty or new folder, found files in it; `--force`" in _refused(bundle, tmp_path / "models")
    whole = _files(place)
    (place / "1" / "model.onnx").write_bytes(b"old")
    assert _files(write_triton_model(bundle, tmp_path / "models", force=True)) == whole
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["copy"]
    (place / "2").mkdir()
    (place / "2" / "model.onnx").write_bytes(b"mine")
    assert "'2/model.onnx' was not written by `compress ship`" in _refused(bundle, tmp_path / "models", force=True)
    (place / "2" / "model.onnx").unlink()
    (place / "2").rmdir()
    (place / "config.pbtxt").write_text('name: "copy"\n')
    assert "its config.pbtxt was not written by `compress ship`" in _refused(bundle, tmp_path / "models", force=True)


def test_a_failed_write_leaves_nothing(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("compress.bundle.shipping.triton.move_into_place", full)
    assert "cannot be written (No space left on device)" in _refused(bundle, tmp_path / "models")
    assert not (tmp_path / "models").exists()


@pytest.mark.parametrize(
    ("name", "repository", "expected"),
    [
        ("a bundle", "models", "expected letters, digits"),
        ("out", ".", "would be one inside the other"),
        ("out", "out", "would be one inside the other"),
        ("out", "file", "expected a folder"),
    ],
)
def test_a_place_that_cannot_be_is_refused_first(tmp_path: Path, name: str, repository: str, expected: str) -> None:
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "out").write_text("")
    with pytest.raises(CompressError, match=expected):
        checked_model_folder(tmp_path / name, tmp_path / repository, force=True)


def test_the_command_writes_both(run: Run, tmp_path: Path) -> None:
    words = [run.folder, "-o", tmp_path / "my-int8", "--store", run.store, "--triton", tmp_path / "models"]
    done = compress("ship", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(tmp_path / "my-int8"), str(tmp_path / "models" / "my-int8")]
    (tmp_path / "my-int8").rename(tmp_path / "moved")
    done = compress("ship", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert not (tmp_path / "my-int8").exists()


@pytest.mark.parametrize("task", ["toy-sentiment", "toy-entailment"])
def test_the_request_of_the_document_gets_the_bundles_answers(
    bundle_of: Callable[[str], Path], tmp_path: Path, task: str
) -> None:
    """The program makes the body; the test does by hand what the server would do by the config."""
    bundle, program = bundle_of(task), tmp_path / "request.py"
    place = write_triton_model(bundle, tmp_path)
    (text,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
        if '"datatype"' in block
    )
    program.write_text(text, encoding="utf-8")
    texts = ["a good film", "the film is not good at all"]
    done = subprocess.run([sys.executable, program, bundle, place, *texts], capture_output=True, text=True, check=True)
    body = json.loads(done.stdout)
    assert [(one["name"], one["datatype"]) for one in body["inputs"]] == [
        (one.name, {9: "INT64"}[one.data_type]) for one in _config(place).input
    ]
    arrays = {one["name"]: np.array(one["data"], np.int64) for one in body["inputs"]}
    assert {one["name"]: tuple(one["shape"]) for one in body["inputs"]} == {k: v.shape for k, v in arrays.items()}
    if task == "toy-sentiment":
        expected = Classifier(bundle, threads=1).logits(texts)
        logits = np.asarray(onnxruntime.InferenceSession(place / "1" / "model.onnx").run(["logits"], arrays)[0])
        np.testing.assert_allclose(logits, expected, atol=1e-5)
