"""Classifiers: the logits of the same texts in each library."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from browser import chromium, tab
from consumer_bundles import shipped
from consumer_checks import (
    FILES,
    FP32,
    JS_VERSIONS,
    OPENVINO_INT8,
    OPTIMUM,
    PROGRAMS,
    SENTENCE_TRANSFORMERS,
    TEXTS,
    by_node,
    by_python,
    check,
    classifier_logits,
    share_of,
)
from consumer_environments import node_with
from file_server import served
from recipe_runs import TASK

ONNXRUNTIMES = ("1.17.3", "1.20.1", "1.22.1", "1.24.4", "")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle trained until its answers differ by text."""
    return shipped(tmp_path_factory.mktemp("world"), TASK, steps=300)


def test_the_texts_are_twenty_different_ones() -> None:
    assert len(set(TEXTS)) == 20


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("version", ONNXRUNTIMES, ids=lambda version: version or "latest")
def test_onnxruntime(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    numpy = "numpy<2" if version.startswith("1.17.") else "numpy"  # built against numpy 1
    needs = (f"onnxruntime=={version}" if version else "onnxruntime", numpy, "tokenizers")
    logits = by_python(needs, "onnxruntime_alone.py", bundle, TEXTS, file, tmp_path)
    check(logits, classifier_logits(bundle, file), share_of(file))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("needs", "program"), [(OPTIMUM, "optimum_onnx.py"), (SENTENCE_TRANSFORMERS, "cross_encoder.py")]
)
def test_optimum_and_cross_encoder(needs: str, program: str, file: str, bundle: Path, tmp_path: Path) -> None:
    check(by_python(needs, program, bundle, TEXTS, file, tmp_path), classifier_logits(bundle, file), share_of(file))


@pytest.mark.parametrize("file", FILES)
def test_openvino(file: str, bundle: Path, tmp_path: Path) -> None:
    share = FP32 if file == "model.onnx" else OPENVINO_INT8
    logits = by_python(("openvino", "tokenizers", "numpy"), "openvino_alone.py", bundle, TEXTS, file, tmp_path)
    check(logits, classifier_logits(bundle, file), share)


@pytest.mark.parametrize("file", ["model.onnx", "model_qdq.onnx"])
def test_tract(file: str, bundle: Path, tmp_path: Path) -> None:
    """Only fp32 and the portable int8 file: it lacks the operators of ONNX Runtime's own int8 file."""
    logits = by_python(("tract", "tokenizers", "numpy"), "tract_alone.py", bundle, TEXTS, file, tmp_path)
    check(logits, classifier_logits(bundle, file), share_of(file))


@pytest.mark.parametrize("file", ["model.onnx", "model_quantized.onnx", "default"])
@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    """In Node. The default is int8, from config.json."""
    logits = by_node(version, "transformers_js.mjs", bundle, TEXTS, file, tmp_path)
    opened = "model_quantized.onnx" if file == "default" else file
    if file == "default":
        assert logits != by_node(version, "transformers_js.mjs", bundle, TEXTS, "model.onnx", tmp_path)
    check(logits, classifier_logits(bundle, opened), share_of(opened))


@pytest.mark.parametrize("file", ["model.onnx", "model_quantized.onnx", "default"])
@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js_in_a_browser(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed")
    place = tmp_path / "served"
    (place / "models").mkdir(parents=True)
    (place / "js").symlink_to(node_with(f"@huggingface/transformers@{version}") / "node_modules")
    (place / "models" / "bundle").symlink_to(bundle)
    shutil.copy(PROGRAMS / "transformers_js_web.mjs", place)
    (place / "page.html").write_text("<!doctype html><title>Logits</title>", encoding="utf-8")
    with served(place) as address, tab(program, tmp_path / "profile") as page:
        page.open(f"{address}/page.html")
        call = f"program.answers({json.dumps(TEXTS)}, {json.dumps(file)})"
        document = page.run(f"import('/transformers_js_web.mjs').then(program => {call})")
        assert all(url.startswith((address, "blob:", "data:")) for url in page.requests())
    opened = "model_quantized.onnx" if file == "default" else file
    check(json.loads(document), classifier_logits(bundle, opened), share_of(opened))
