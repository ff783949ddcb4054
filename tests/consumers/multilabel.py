"""Multilabel models: each label's probability, from pipelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consumer_bundles import LABELS_TASK, WORDS, shipped
from consumer_checks import FILES, JS_FILES, JS_VERSIONS, OPTIMUM, TEXTS, by_node, by_python, check, share_of

from compress.runtime import Classifier

LABELS = ("film", "good", "not")  # a text has the labels among its words


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world, rng = tmp_path_factory.mktemp("labels"), np.random.default_rng(0)
    train = [" ".join(rng.choice(WORDS, size=rng.integers(2, 9))) for _ in range(300)]
    for name, texts in (("train", train), ("dev", TEXTS)):
        rows = ({"text": text, "labels": [label for label in LABELS if label in text.split(" ")]} for text in texts)
        (world / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return shipped(world, LABELS_TASK, steps=200)


def check_labels(rows: list[dict[str, float]], bundle: Path, file: str) -> None:
    expected = Classifier(bundle, precision=FILES[file], threads=1).predict(TEXTS, batch_size=1)
    numbers: list[Any] = [[answer.scores[label] for label in LABELS] for answer in expected]
    probabilities = [[row[label] for label in LABELS] for row in rows]
    check(probabilities, np.array(numbers), share_of(file), least=0.5, what="probability")
    assert any(sum(row) > 1.5 for row in probabilities), "several labels of a text"


@pytest.mark.parametrize("file", FILES)
def test_optimum(file: str, bundle: Path, tmp_path: Path) -> None:
    check_labels(by_python(OPTIMUM, "optimum_onnx_labels.py", bundle, TEXTS, file, tmp_path), bundle, file)


@pytest.mark.parametrize("file", JS_FILES)
@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    check_labels(by_node(version, "transformers_js_labels.mjs", bundle, TEXTS, file, tmp_path), bundle, file)
