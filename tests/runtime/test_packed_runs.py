"""The packed form in the runner: taken for padded batches when it is worth it, with the same answers, and never a stranger's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from runtime_toys import WORDS, bag, tokenizer_file

from compress.errors import CompressError
from compress.runtime import Classifier, packing
from compress.runtime.engine import OnnxRuntime

RAGGED = [" ".join(WORDS[: 1 + 5 * i % 14]) for i in range(60)]


@pytest.fixture
def folder(tiny_checkpoint: Callable[[str], Path], tiny_onnx: Callable[..., Path], tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_bytes((tiny_checkpoint("bert") / "config.json").read_bytes())
    for name in ("model.onnx", "model_packed.onnx"):
        shutil.copyfile(tiny_onnx("bert", "fast").with_name(name), tmp_path / name)
    tokenizer_file(tmp_path / "tokenizer.json")
    return tmp_path


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "WORTH", 0)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """(file, share of padding) of every run."""
    found: list[tuple[str, float]] = []
    run = OnnxRuntime.run

    def spy(self: OnnxRuntime, batch: dict[str, np.ndarray]) -> np.ndarray:
        found.append((self.path.name, 1 - float(batch["attention_mask"].mean())))
        return run(self, batch)

    monkeypatch.setattr(OnnxRuntime, "run", spy)
    return found


@pytest.mark.usefixtures("at_once")
def test_padded_batches_are_run_packed_and_the_others_not(folder: Path, ran: list[tuple[str, float]]) -> None:
    model = Classifier(folder, threads=1)
    found = model.predict(RAGGED, tokens=300)
    assert {name for name, _ in ran} == {"model.onnx", "model_packed.onnx"}
    assert all((share >= packing.FROM) == (name == "model_packed.onnx") for name, share in ran)
    ran.clear()
    expected = [model.predict([text])[0] for text in RAGGED]
    assert {name for name, _ in ran} == {"model.onnx"}
    for one, other in zip(found, expected, strict=True):
        assert one.label == other.label
        assert one.score == pytest.approx(other.score, abs=1e-6)


def test_it_is_opened_when_enough_padding_was_computed(
    folder: Path, ran: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "WORTH", 300)
    model = Classifier(folder, threads=1)
    for _ in range(6):
        model.predict(RAGGED, tokens=600)
    names = [name for name, share in ran if share >= packing.FROM]
    first = names.index("model_packed.onnx")
    assert first > 0
    assert set(names[first:]) == {"model_packed.onnx"}


@pytest.mark.usefixtures("at_once")
def test_logits_depend_on_the_texts_alone(folder: Path, ran: list[tuple[str, float]]) -> None:
    model = Classifier(folder, threads=1)
    model.logits(RAGGED)
    model.predict(RAGGED, tokens=300)
    model.logits(RAGGED)
    assert {name for name, _ in ran[-3:]} == {"model.onnx"}


@pytest.mark.usefixtures("at_once")
def test_a_folder_without_one(folder: Path, ran: list[tuple[str, float]]) -> None:
    (folder / "model_packed.onnx").unlink()
    assert len(Classifier(folder, threads=1).predict(RAGGED, tokens=300)) == len(RAGGED)
    assert {name for name, _ in ran} == {"model.onnx"}


@pytest.mark.usefixtures("at_once")
def test_one_of_another_model_is_refused(folder: Path, tiny_onnx: Callable[..., Path], tmp_path: Path) -> None:
    """Somebody quantizes or exports again and replaces the model file alone."""
    import onnx

    model = onnx.load(folder / "model.onnx")
    model.producer_name = "another"
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(CompressError, match=r"model_packed\.onnx: made for another model\.onnx"):
        Classifier(folder, threads=1).predict(RAGGED, tokens=300)
    shutil.copyfile(next(bag(tmp_path / "bag").rglob("*.onnx")), folder / "model_packed.onnx")
    with pytest.raises(CompressError, match=r"model_packed\.onnx: made for another model\.onnx"):
        Classifier(folder, threads=1).predict(RAGGED, tokens=300)


@pytest.mark.usefixtures("at_once")
def test_threads_open_it_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    real = packing.open_packed
    monkeypatch.setattr(packing, "open_packed", lambda path, threads: opened.append(path) or real(path, threads))
    model = Classifier(folder, threads=1)
    expected = model.logits(RAGGED)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: model.predict(RAGGED, tokens=300), range(8)))
    assert len(opened) == 1
    for found in answers:
        assert [prediction.label for prediction in found] == [model.labels[row.argmax()] for row in expected]
