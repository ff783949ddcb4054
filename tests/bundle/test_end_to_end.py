"""A real DistilBERT, exported and quantized: ship, verify, predict; and the documented program, without this package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from bundle_making import Run, make_run

from compress.bundle import read_bundle, ship, verify
from compress.bundle.document import write_bundle
from compress.bundle.files import measure
from compress.graphs.model_files import get_metadata, set_metadata
from compress.quantize import quantize_onnx
from compress.results import read_result, write_result
from compress.runtime import Classifier
from compress.sessions.checks import WEIGHTS
from compress.spec.quantization import Quantize
from compress.store import Store
from compress.tasks import wordpiece

LABELS = ("no", "maybe", "yes")
DOCUMENT = Path(__file__).parents[2] / "docs" / "bundle.md"


@pytest.fixture(scope="module")
def real(
    tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Callable[[str], Path], tiny_onnx: Callable[..., Path]
) -> Run:
    """A made-up run whose bag of words is replaced by a real DistilBERT's artefacts."""
    from compress.models.checkpoints.folders import save_checkpoint

    root = tmp_path_factory.mktemp("real")
    invented = make_run(root / "invented")
    store = Store(root / "store")

    def checkpoint(out: Path, work: Path) -> dict[str, Any]:
        from transformers import AutoModelForSequenceClassification

        model = AutoModelForSequenceClassification.from_pretrained(tiny_checkpoint("distilbert"))
        save_checkpoint(model, wordpiece(120), out)
        return {}

    def graph(out: Path, work: Path) -> dict[str, Any]:
        for name in ("model.onnx", "model_unpadded.onnx"):
            (out / name).write_bytes(tiny_onnx("distilbert", "fast").with_name(name).read_bytes())
        return {}

    weights = store.build("c" * 32, checkpoint, describe={})
    exported = store.build("e" * 32, graph, describe={})
    store.build(
        "f" * 32,
        lambda out, work: quantize_onnx(exported.path / "model.onnx", out, Quantize(method="dynamic")),
        describe={},
    )
    result = read_result(invented.folder)
    task = result.task.model_copy(update={"labels": LABELS})
    write_result(
        result.model_copy(update={"task": task, "settings": result.settings | {"max_length": 24}}), invented.folder
    )
    return Run(invented.folder, store.root, invented.task, weights.path)


def test_ship_verify_predict(real: Run, tmp_path: Path) -> None:
    out = ship(real.folder, tmp_path / "out", store=real.store, with_checkpoint=True)
    report = verify(out)
    assert report.passed, report
    texts = ["a text with some words", "another", "", "long " * 100]
    int8, fp32 = Classifier(out), Classifier(out, precision="fp32")
    assert int8.precision == "int8"
    assert {prediction.label for prediction in int8.predict(texts)} <= set(LABELS)
    difference = np.abs(int8.logits(texts) - fp32.logits(texts)).max()
    assert 0 < difference < 0.5, "int8 is another graph with nearly the same answers"
    _transformers_agrees(out, texts, fp32.logits(texts))


def test_the_unpadded_forms_are_shipped_and_checked(real: Run, tmp_path: Path) -> None:
    out = ship(real.folder, tmp_path / "out", store=real.store)
    unpadded = [f"onnx/model{form}_unpadded.onnx" for form in ("", "_quantized")]
    assert set(unpadded) <= set(read_bundle(out).files)
    assert [graph.unpadded for graph in read_bundle(out).graphs.values()] == unpadded
    names = {check.name for check in verify(out).checks}
    assert {f"{what} {p} unpadded" for what in ("onnx", "probe") for p in ("fp32", "int8")} <= names
    for change in (_with_another_owner, _with_other_weights, _made_for_another):
        shutil.rmtree(tmp_path / "changed", ignore_errors=True)
        changed = Path(shutil.copytree(out, tmp_path / "changed"))
        expected = change(changed / unpadded[1])
        info = read_bundle(changed)
        write_bundle(info.model_copy(update={"files": measure(changed)}), changed)
        failed = {check.name: check.detail for check in verify(changed).checks if not check.passed}
        assert list(failed) == [expected[0]]
        assert expected[1] in failed[expected[0]]


def _with_another_owner(path: Path) -> tuple[str, str]:
    """Make the weights refer to a third file of the folder."""
    model = onnx.load(path, load_external_data=False)
    tensor = next(t for t in model.graph.initializer if t.external_data)
    next(e for e in tensor.external_data if e.key == "location").value = "model.onnx"
    path.write_bytes(model.SerializeToString())
    return "onnx int8 unpadded", "expected all weights in model_quantized.onnx, found some in 'model.onnx'"


def _made_for_another(path: Path) -> tuple[str, str]:
    model = onnx.load(path, load_external_data=False)
    set_metadata(model, get_metadata(model) | {WEIGHTS: "0" * 64})
    path.write_bytes(model.SerializeToString())
    return "onnx int8 unpadded", "made for another model_quantized.onnx"


def _with_other_weights(path: Path) -> tuple[str, str]:
    """Make all int8 weights start at another offset: well-formed, but wrong."""
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "offset" and tensor.data_type == onnx.TensorProto.INT8:
                entry.value = "4096"
    path.write_bytes(model.SerializeToString())
    return "probe int8 unpadded", "does not compute what the bundle's record says"


def _transformers_agrees(out: Path, texts: list[str], expected: np.ndarray) -> None:
    """Check that the shipped folder is a transformers checkpoint, with its own tokenizer, limit, labels and weights."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(out)
    model = AutoModelForSequenceClassification.from_pretrained(out).eval()
    assert tuple(model.config.id2label.values()) == LABELS
    inputs = tokenizer(texts, truncation=True, padding=True, return_tensors="pt", return_token_type_ids=False)
    assert inputs["input_ids"].shape[1] == 24
    with torch.inference_mode():
        np.testing.assert_allclose(model(**inputs).logits.numpy(), expected, atol=1e-4)


def _documented() -> list[str]:
    return re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)


def _run(program: str, *arguments: Path, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_documented_program_needs_nothing_of_ours(bundle: Path, tmp_path: Path) -> None:
    witness = "assert not {'compress', 'torch', 'transformers', 'onnx'} & set(sys.modules)\n"
    lines = _run(_documented()[0] + witness, bundle, cwd=tmp_path).splitlines()
    texts = ["A charming journey.", "No end worth waiting for."]
    expected = Classifier(bundle).predict(texts)
    assert lines == [f"{one.label} {one.score:.3f} {text}" for one, text in zip(expected, texts, strict=True)]


def test_the_documented_classifier_runs(bundle: Path) -> None:
    """Runs in the bundle's parent folder, with the bundle named as on the page."""
    bundle.rename(bundle.parent / "out")
    source = f"import sys; sys.path.insert(0, {str(DOCUMENT.parents[1])!r})\n"
    printed = _run(source + _documented()[1], cwd=bundle.parent)
    assert re.search(r"^(negative|positive) [01]\.\d+ \{'negative': \d(\.\d+)?(e-\d+)?, 'positive': ", printed)


def test_the_documented_fields_and_layout_are_the_real_ones(bundle: Path) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.split("## bundle.json")[1].split("## Verify")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == set(json.loads((bundle / "bundle.json").read_text()))
    layout = set(re.findall(r"^  ([\w./]+)", text.split("```")[1], re.MULTILINE))
    assert layout == {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
