"""Taggers: the logits of each word's first token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from consumer_bundles import WORD_TASK, WORDS, shipped
from consumer_checks import FILES, JS_FILES, JS_VERSIONS, OPTIMUM, TEXTS, by_node, by_python, check, share_of

from compress.runtime import Tagger


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that labels each word of the list by its place in it: the beginning of ONE, no entity, the beginning and the inside of
    TWO."""
    world = tmp_path_factory.mktemp("words")
    tags: dict[str, str] = dict(zip(WORDS, ("B-ONE", "O", "B-TWO", "I-TWO") * 3, strict=True))
    rng = np.random.default_rng(0)
    train = [" ".join(rng.choice(WORDS, size=rng.integers(2, 9))) for _ in range(300)]
    for name, texts in (("train", train), ("dev", TEXTS)):
        lines = ("".join(f"{word} {tags[word]}\n" for word in text.split(" ")) for text in texts)
        (world / f"{name}.conll").write_text("\n".join(lines), encoding="utf-8")
    return shipped(world, WORD_TASK, steps=150)


def check_words(logits: Any, bundle: Path, file: str) -> None:
    expected = Tagger(bundle, precision=FILES[file], threads=1).logits(TEXTS, batch_size=1)
    assert len(expected) == sum(len(text.split(" ")) for text in TEXTS)
    check(logits, expected, share_of(file))


@pytest.mark.parametrize("file", FILES)
def test_optimum(file: str, bundle: Path, tmp_path: Path) -> None:
    check_words(by_python(OPTIMUM, "optimum_onnx_words.py", bundle, TEXTS, file, tmp_path), bundle, file)


@pytest.mark.parametrize("file", JS_FILES)
@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    check_words(by_node(version, "transformers_js_words.mjs", bundle, TEXTS, file, tmp_path), bundle, file)
