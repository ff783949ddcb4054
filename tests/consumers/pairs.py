"""Pairs of texts: which tokens of long pairs the libraries cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tokenizers
from consumer_bundles import PAIR_TASK, WORDS, shipped
from consumer_checks import JS_VERSIONS, OPTIMUM, SENTENCE_TRANSFORMERS, by_node, by_python

from compress.runtime import Classifier

PAIRS = [[" ".join(WORDS[(start + 5 * each) % len(WORDS)] for each in range(count)) for start, count in enumerate(counts)]
         for counts in ((40, 30), (30, 45), (40, 4), (4, 40), (15, 14))]  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle trained so little that every token affects the logits."""
    return shipped(tmp_path_factory.mktemp("pairs"), PAIR_TASK, steps=100)


def cut_joined(bundle: Path) -> np.ndarray:
    """Return the logits of `PAIRS` if the joined texts are cut at the end, including the closing separator."""
    limit = int(json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["max_length"])
    tokenizer = tokenizers.Tokenizer.from_file(str(bundle / "tokenizer.json"))
    tokenizer.no_truncation()
    session = onnxruntime.InferenceSession(bundle / "onnx" / "model.onnx", providers=["CPUExecutionProvider"])
    rows = []
    for first, second in PAIRS:
        encoded = tokenizer.encode(first, second)
        columns = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        feed = {value.name: np.array([columns[value.name][:limit]], np.int64) for value in session.get_inputs()}
        rows.append(np.asarray(session.run(["logits"], feed)[0])[0])
    return np.array(rows, np.float32)


def check_cut(rows: Any, bundle: Path, *, joined: bool) -> None:
    """Check that long pairs were cut in one way and not in the other: at the end of the `joined` texts, or the longer text first, like
    ours."""
    longest = np.asarray(Classifier(bundle, precision="fp32", threads=1).logits([(one, two) for one, two in PAIRS]))
    other, same = (longest, cut_joined(bundle)) if joined else (cut_joined(bundle), longest)
    far, near = (np.abs(np.array(rows) - logits).max(axis=1) for logits in (other, same))
    print(f"difference of a logit: at most {near.max():.1g}; cut otherwise at least {far.min():.1g}")
    assert near.max() < 1e-6 < far.min() / 20


@pytest.mark.parametrize(
    ("needs", "program"), [(OPTIMUM, "optimum_onnx.py"), (SENTENCE_TRANSFORMERS, "cross_encoder.py")]
)
def test_long_pairs_are_cut_as_ours(needs: str, program: str, bundle: Path, tmp_path: Path) -> None:
    check_cut(by_python(needs, program, bundle, PAIRS, "model.onnx", tmp_path), bundle, joined=False)


@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js_cuts_the_end_of_both_texts_together(version: str, bundle: Path, tmp_path: Path) -> None:
    check_cut(by_node(version, "transformers_js.mjs", bundle, PAIRS, "model.onnx", tmp_path), bundle, joined=True)
