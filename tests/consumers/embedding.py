"""Sentence encoders: the vectors of the same texts, from the last layer, several layers, and no layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from consumer_bundles import VECTOR_TASK, shipped
from consumer_checks import (
    FILES,
    JS_FILES,
    JS_VERSIONS,
    SENTENCE_TRANSFORMERS,
    TEXTS,
    by_node,
    by_python,
    check,
    share_of,
)
from pretrained_toys import ALIKE, encoder_folder

from compress.runtime import Embedder

LAYERS = ["last", "last-2", "mix"]
ENCODER = "name: encoder\ntitle: BERT, 3 layers, random weights\nlicence: Apache-2.0\ncheckpoint: {{path: encoder}}\nlayers: {layers}\n"
STUDENT = "name: mixing\ntitle: Mixing\nlayers: 2\nvector_layers: mix\n"
DISTIL = ["--student", "mixing.yaml", *(f"--set=distill.{field}" for field in ("max_steps=8", "learning_rate=0.002"))]


@pytest.fixture(scope="module", params=LAYERS)
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with random weights, whose vectors still differ by text. `mix`: of a student that learnt its layer weights."""
    world = tmp_path_factory.mktemp("vectors")
    if request.param == "last":
        return shipped(world, VECTOR_TASK, steps=None)
    encoder_folder(world / "encoder", "bert", layers=3, seed=9)
    mix = request.param == "mix"
    (world / "encoder.yaml").write_text(ENCODER.format(layers="last" if mix else request.param), encoding="utf-8")
    (world / "mixing.yaml").write_text(STUDENT, encoding="utf-8")
    recipe, options = ("distilbert", DISTIL) if mix else ("int8", [])
    out = shipped(
        world, ALIKE.format(kind="embedding"), "--teacher", "encoder.yaml", *options, recipe=recipe, steps=None
    )
    layers = json.loads((out / "config.json").read_text(encoding="utf-8"))["sentence_layers"]
    assert len(layers) == 3 and 0.01 < max(layers) - min(layers) < 0.9 if mix else layers == 2
    return out


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Token vectors and their mean, for libraries that ignore `model_type`."""
    options = ("--set", "distill.max_steps=3")
    return shipped(tmp_path_factory.mktemp("static"), VECTOR_TASK, *options, recipe="static", steps=None)


def check_vectors(vectors: Any, bundle: Path, file: str) -> None:
    expected = Embedder(bundle, precision=FILES[file], threads=1).embed(TEXTS, batch_size=1)
    check(vectors, expected, share_of(file), least=0.2, what="number of a vector")


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    ("needs", "program"), [(SENTENCE_TRANSFORMERS, "sentence_encoder.py"), ("fastembed", "fastembed_custom.py")]
)
def test_sentence_encoders(needs: str, program: str, file: str, bundle: Path, tmp_path: Path) -> None:
    check_vectors(by_python(needs, program, bundle, TEXTS, file, tmp_path), bundle, file)


@pytest.mark.parametrize("file", FILES)
def test_static_sentence_encoders(file: str, static: Path, tmp_path: Path) -> None:
    """A text without words has a zero vector."""
    texts = [*TEXTS, ""]
    expected = Embedder(static, precision=FILES[file], threads=1).embed(texts, batch_size=1)
    assert not expected[-1].any()
    vectors = by_python("fastembed", "fastembed_custom.py", static, texts, file, tmp_path)
    check(vectors, expected, share_of(file), least=0.2, what="number of a vector")


@pytest.mark.parametrize("file", JS_FILES)
@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    """Only texts that fit: it cuts longer ones without keeping their closing separator."""
    check_vectors(by_node(version, "transformers_js_vectors.mjs", bundle, TEXTS, file, tmp_path), bundle, file)
