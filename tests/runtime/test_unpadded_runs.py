"""The unpadded form in the runner: used for padded batches, with the same answers, and never another model's."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from runtime_toys import WORDS, bag, tokenizer_file

from compress.quantize import quantize_onnx
from compress.runtime import Classifier, unpadded
from compress.runtime.engine import OnnxRuntime
from compress.spec.quantization import Quantize

RAGGED = [" ".join(WORDS[: 1 + 5 * i % 14]) for i in range(60)]


@pytest.fixture
def folder(tiny_checkpoint: Callable[[str], Path], tiny_onnx: Callable[..., Path], tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_bytes((tiny_checkpoint("bert") / "config.json").read_bytes())
    for name in ("model.onnx", "model_unpadded.onnx"):
        shutil.copyfile(tiny_onnx("bert", "fast").with_name(name), tmp_path / name)
    tokenizer_file(tmp_path / "tokenizer.json")
    return tmp_path


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Record (file, share of padding) of every run."""
    runs: list[tuple[str, float]] = []
    run = OnnxRuntime.run

    def spy(self: OnnxRuntime, batch: dict[str, np.ndarray]) -> np.ndarray:
        runs.append((self.path.name, 1 - float(batch["attention_mask"].mean())))
        return run(self, batch)

    monkeypatch.setattr(OnnxRuntime, "run", spy)
    return runs


def test_padded_batches_are_run_unpadded_and_the_others_not(folder: Path, ran: list[tuple[str, float]]) -> None:
    model = Classifier(folder, threads=1)
    predictions = model.predict(RAGGED, tokens=300)
    assert {name for name, _ in ran} == {"model.onnx", "model_unpadded.onnx"}
    assert all((share >= unpadded.FROM) == (name == "model_unpadded.onnx") for name, share in ran)
    ran.clear()
    expected = [model.predict([text])[0] for text in RAGGED]
    assert {name for name, _ in ran} == {"model.onnx"}
    for one, other in zip(predictions, expected, strict=True):
        assert one.label == other.label
        assert one.score == pytest.approx(other.score, abs=1e-6)


def test_the_same_call_gives_the_same_answers(folder: Path, ran: list[tuple[str, float]]) -> None:
    """Also if each run's own quantization range makes the two forms differ: earlier calls have no influence."""
    quantize_onnx(folder / "model.onnx", folder, Quantize(method="dynamic"))
    model = Classifier(folder, threads=1)
    first = model.logits(RAGGED)
    names = [name for name, _ in ran]
    assert set(names) == {"model_quantized.onnx", "model_quantized_unpadded.onnx"}
    model.predict(RAGGED, tokens=300)
    ran.clear()
    np.testing.assert_array_equal(model.logits(RAGGED), first)
    assert [name for name, _ in ran] == names


def test_a_folder_without_one(folder: Path, ran: list[tuple[str, float]]) -> None:
    (folder / "model_unpadded.onnx").unlink()
    assert len(Classifier(folder, threads=1).predict(RAGGED, tokens=300)) == len(RAGGED)
    assert {name for name, _ in ran} == {"model.onnx"}


def _of_another_model(folder: Path) -> str:
    """Replace only the model file, as after another export."""
    model = onnx.load(folder / "model.onnx")
    model.producer_name = "another"
    onnx.save(model, folder / "model.onnx")
    return "made for another model.onnx"


def _elsewhere(folder: Path) -> str:
    model = onnx.load(folder / "model_unpadded.onnx", load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            entry.value = "tokenizer.json" if entry.key == "location" else entry.value
    (folder / "model_unpadded.onnx").write_bytes(model.SerializeToString())
    return "expected its weights in model.onnx, found some in 'tokenizer.json'"


def _truncated(folder: Path) -> str:
    os.truncate(folder / "model_unpadded.onnx", 3000)
    return "not an ONNX file, or a truncated one"


def _whole(folder: Path) -> str:
    shutil.copyfile(next(bag(folder / "bag").rglob("*.onnx")), folder / "model_unpadded.onnx")
    return "made for another model.onnx"


@pytest.mark.parametrize("damage", [_of_another_model, _elsewhere, _truncated, _whole])
def test_one_that_does_not_belong_is_left_alone_with_a_warning(
    folder: Path, ran: list[tuple[str, float]], damage: Callable[[Path], str]
) -> None:
    expected = damage(folder)
    model = Classifier(folder, threads=1)
    with pytest.warns(UserWarning, match=re.escape(expected)):
        predictions = model.predict(RAGGED, tokens=300)
    assert len(predictions) == len(RAGGED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict(RAGGED, tokens=300) == predictions
    assert {name for name, _ in ran} == {"model.onnx"}


def test_one_that_the_bundle_lists_and_lacks_is_missed_aloud(folder: Path, ran: list[tuple[str, float]]) -> None:
    names = ("config.json", "tokenizer.json", "model.onnx", "model_unpadded.onnx")
    files = {name: {"sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest()} for name in names}
    (folder / "bundle.json").write_text(json.dumps({"files": files}))
    (folder / "model_unpadded.onnx").unlink()
    model = Classifier(folder, threads=1)
    with pytest.warns(
        UserWarning, match=r"model_unpadded\.onnx: no such file, but bundle\.json lists it; .* more slowly"
    ):
        model.predict(RAGGED, tokens=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(RAGGED, tokens=300)
        Classifier(folder, threads=1, verify=False).predict(RAGGED, tokens=300)
    assert {name for name, _ in ran} == {"model.onnx"}


@pytest.mark.parametrize("moved", ["link", "working directory"])
def test_a_path_that_leads_elsewhere_later_changes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: list[tuple[str, float]], moved: str
) -> None:
    (tmp_path / "releases").mkdir()
    current = tmp_path / "releases" / "current"
    current.symlink_to(folder)
    monkeypatch.chdir(current.parent)
    model = Classifier("current" if moved == "working directory" else current, threads=1)
    if moved == "link":
        current.unlink()
        current.symlink_to(tmp_path / "releases")
    else:
        monkeypatch.chdir("/")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(RAGGED, tokens=300)
    assert {name for name, _ in ran} == {"model.onnx", "model_unpadded.onnx"}


def test_a_bundle_that_is_replaced_under_a_running_classifier_changes_nothing(
    folder: Path, tiny_onnx: Callable[..., Path], ran: list[tuple[str, float]]
) -> None:
    model = Classifier(folder, threads=1)
    expected = model.predict(RAGGED, tokens=300)
    assert "model_unpadded.onnx" in {name for name, _ in ran}
    os.truncate(folder / "model.onnx", 0)  # as `cp` starts
    assert model.predict(RAGGED, tokens=300) == expected
    late = Classifier(_copied(tiny_onnx, folder), threads=1)
    for name in ("model.onnx", "model_unpadded.onnx"):
        shutil.copyfile(tiny_onnx("bert", "fast").with_name(name), folder / f"new-{name}")
        (folder / f"new-{name}").replace(folder / name)
    with pytest.warns(UserWarning, match="replaced since it was opened"):
        assert [one.label for one in late.predict(RAGGED, tokens=300)] == [one.label for one in expected]


def test_files_that_are_links_are_followed(folder: Path, ran: list[tuple[str, float]]) -> None:
    """As in a hub's cache."""
    blobs = folder / "blobs"
    blobs.mkdir()
    for number, name in enumerate(("model.onnx", "model_unpadded.onnx")):
        (folder / name).rename(blobs / str(number))
        (folder / name).symlink_to(blobs / str(number))
    Classifier(folder, threads=1).predict(RAGGED, tokens=300)
    assert "model_unpadded.onnx" in {name for name, _ in ran}


def _copied(tiny_onnx: Callable[..., Path], folder: Path) -> Path:
    for name in ("model.onnx", "model_unpadded.onnx"):
        shutil.copyfile(tiny_onnx("bert", "fast").with_name(name), folder / name)
    return folder


def test_threads_open_it_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    real = unpadded.open_unpadded
    monkeypatch.setattr(unpadded, "open_unpadded", lambda path, threads: opened.append(path) or real(path, threads))
    model = Classifier(folder, threads=1)
    expected = model.logits(RAGGED)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: model.predict(RAGGED, tokens=300), range(8)))
    assert len(opened) == 1
    for predictions in answers:
        assert [prediction.label for prediction in predictions] == [model.labels[row.argmax()] for row in expected]
