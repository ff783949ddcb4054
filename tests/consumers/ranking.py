"""Rankers: the scores and the order of the passages of queries."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from consumer_bundles import RANKING_TASK, WORDS, shipped
from consumer_checks import (
    FILES,
    JS_FILES,
    JS_VERSIONS,
    OPTIMUM,
    SENTENCE_TRANSFORMERS,
    by_node,
    by_python,
    check,
    share_of,
)

from compress.runtime import Ranker

RELEVANT = ("good", "fine", "film")
Query = tuple[str, list[str]]


def queries(count: int, seed: int) -> list[Query]:
    """Return queries with five different passages, which have none to all of the relevant words."""
    rng, examples = np.random.default_rng(seed), []
    for number in range(count):
        passages = {" ".join(rng.choice(WORDS, size=rng.integers(3, 9))) for _ in range(4)}
        examples.append((f"{rng.choice(WORDS)} {number}", sorted({*passages, f"the {' '.join(RELEVANT)}"})))
    return examples


QUERIES = queries(6, seed=1)
PAIRS = [(query, passage) for query, passages in QUERIES for passage in passages]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = tmp_path_factory.mktemp("ranks")
    for name, examples in (("train", queries(80, seed=0)), ("dev", QUERIES)):
        with (world / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["query", "passage", "relevance"])
            for query, passages in examples:
                rows.writerows([query, one, sum(word in one.split(" ") for word in RELEVANT)] for one in passages)
    return shipped(world, RANKING_TASK, steps=150)


def scores(bundle: Path, file: str) -> np.ndarray:
    return np.asarray(Ranker(bundle, precision=FILES[file], threads=1).logits(PAIRS, batch_size=1))


@pytest.mark.parametrize("file", FILES)
def test_cross_encoder(file: str, bundle: Path, tmp_path: Path) -> None:
    """Its `rank`, without a setting for how to turn logits into scores."""
    ranks = by_python(SENTENCE_TRANSFORMERS, "cross_encoder_ranks.py", bundle, QUERIES, file, tmp_path)
    ranker = Ranker(bundle, precision=FILES[file], threads=1)
    expected = [ranker.rank(query, passages, batch_size=1) for query, passages in QUERIES]
    assert [[place for place, _ in row] for row in ranks] == [[one.place for one in row] for row in expected]
    assert any([one.place for one in row] != list(range(len(row))) for row in expected)
    flat = np.array([[one.score] for row in expected for one in row])
    check([[score] for row in ranks for _, score in row], flat, share_of(file), what="score")


@pytest.mark.parametrize("file", FILES)
def test_optimum(file: str, bundle: Path, tmp_path: Path) -> None:
    logits = by_python(OPTIMUM, "optimum_onnx.py", bundle, PAIRS, file, tmp_path)
    check(logits, scores(bundle, file), share_of(file), what="score")


@pytest.mark.parametrize("file", JS_FILES)
@pytest.mark.parametrize("version", JS_VERSIONS)
def test_transformers_js(version: str, file: str, bundle: Path, tmp_path: Path) -> None:
    logits = by_node(version, "transformers_js.mjs", bundle, PAIRS, file, tmp_path)
    check(logits, scores(bundle, file), share_of(file), what="score")
