"""A word embedding table in 4 bits, in each library that opens a classifier."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from consumer_bundles import shipped
from consumer_checks import (
    JS_VERSIONS,
    OPENVINO_INT8,
    OPTIMUM,
    SENTENCE_TRANSFORMERS,
    TEXTS,
    by_node,
    by_python,
    check,
    classifier_logits,
    share_of,
)
from recipe_runs import TASK

from compress.quantize.weights import LONG

FILES = ("model_quantized.onnx", "model_qdq.onnx")
ONNXRUNTIMES = ("1.20.1", "1.22.1", "1.24.4", "")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of a teacher with more words than a table that keeps 8 bits."""
    settings = ("quantize.word_bits=4", "finetune.max_steps=150", "finetune.epochs=40", "finetune.learning_rate=0.0005")
    options = (word for setting in settings for word in ("--set", setting))
    folder = shipped(tmp_path_factory.mktemp("world"), TASK, "--teacher", "bert-mini", *options, steps=None)
    for file in FILES:
        stored = onnx.load(folder / "onnx" / file).graph.initializer
        assert any(
            len(tensor.dims) == 3 and tensor.dims[0] >= LONG for tensor in stored
        )  # two values per byte, in blocks
    return folder


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("version", ONNXRUNTIMES, ids=lambda version: version or "latest")
def test_onnxruntime(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    needs = (f"onnxruntime=={version}" if version else "onnxruntime", "numpy", "tokenizers")
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
    logits = by_python(("openvino", "tokenizers", "numpy"), "openvino_alone.py", bundle, TEXTS, file, tmp_path)
    check(logits, classifier_logits(bundle, file), OPENVINO_INT8)


@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js(version: str, bundle: Path, tmp_path: Path) -> None:
    file = "model_quantized.onnx"
    check(
        by_node(version, "transformers_js.mjs", bundle, TEXTS, file, tmp_path),
        classifier_logits(bundle, file),
        share_of(file),
    )
