"""benchmarks/peers/text_*.py: how a peer is asked for answers, one text at a time, many in one call, and by several callers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

Answer = Callable[[Sequence[str], str], list[float]]


def served(peers: Any, tmp_path: Path, answer: Answer, texts: Sequence[str]) -> Any:
    """Return a TextServer of a peer that answers with `answer`."""
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    peer = SimpleNamespace(PACKAGES=("numpy",), WAYS={"slow": "…", "fast": "…"}, open_texts=lambda *_: answer)
    server = peers("text_child").TextServer(peer)
    server.load("variant", str(tmp_path), 1, str(tmp_path / "texts.json"))
    return server


def test_single_texts_are_asked_for_in_the_first_way(peers: Any, tmp_path: Path) -> None:
    seen: list[tuple[list[str], str]] = []

    def answer(texts: Sequence[str], way: str) -> list[float]:
        seen.append(([*texts], way))
        return [len(text) / 10 for text in texts]

    server = served(peers, tmp_path, answer, ["a", "bb", "ccc"])
    assert server.probabilities(2) == [0.1, 0.2]
    assert seen == [(["a"], "slow"), (["bb"], "slow")]
    assert {*server.many(3, "fast")} == {"wall", "cpu", "before_mb", "after_mb"}
    assert seen[2:] == [(["a", "bb", "ccc"], "fast")]
    assert server.versions() == {"numpy": np.__version__}


def test_a_peer_that_gives_fewer_answers_is_refused(peers: Any, tmp_path: Path) -> None:
    server = served(peers, tmp_path, lambda texts, way: [0.5], ["a", "b"])
    with pytest.raises(RuntimeError, match="1 answers to 2 texts"):
        server.many(2, "fast")


def test_callers_ask_at_once_for_each_text_once(peers: Any, tmp_path: Path) -> None:
    together, seen = threading.Barrier(4, timeout=30), []

    def answer(texts: Sequence[str], way: str) -> list[float]:
        seen.extend(texts)
        together.wait()  # continues once four requests have arrived
        return [0.5]

    texts = [f"text {index}" for index in range(12)]
    result = served(peers, tmp_path, answer, texts).calls(callers=4, requests=8)
    assert sorted(seen) == sorted(texts[:8])
    assert (result["failed"], result["raised"]) == (0, [])
    assert 0 < result["p50"] <= result["p99"] <= result["wall"]


def test_requests_that_fail_are_counted_and_not_timed(peers: Any, tmp_path: Path) -> None:
    def answer(texts: Sequence[str], way: str) -> list[float]:
        if texts[0].startswith("bad"):
            raise ValueError("no\n  answer")
        return [0.5]

    server = served(peers, tmp_path, answer, ["good", "bad 1", "good", "bad 2", "good"])
    result = server.calls(callers=2, requests=5)
    assert (result["failed"], result["raised"]) == (2, ["ValueError: no answer"])
    assert result["answered"] == 3 == server.calls(callers=2, requests=300)["answered"]  # fewer texts than requests
    assert result["p50"] is not None
    only_bad = served(peers, tmp_path, answer, ["bad", "bad"]).calls(callers=1, requests=2)
    assert (only_bad["failed"], only_bad["p50"], only_bad["p99"]) == (2, None, None)


def test_a_pipeline_s_answers_keep_the_order_of_the_texts(peers: Any) -> None:
    """In every way, each with the score of the second label, wherever the pipeline puts it."""
    sizes: list[tuple[list[str], int]] = []

    class Pipeline:
        model = SimpleNamespace(config=SimpleNamespace(id2label={0: "NO", 1: "YES"}))

        def __call__(
            self, texts: list[str], batch_size: int, truncation: bool, top_k: None
        ) -> list[list[dict[str, Any]]]:
            assert truncation
            sizes.append((texts, batch_size))
            rows = [[("YES", len(text) / 10), ("NO", 1 - len(text) / 10)] for text in texts]
            rows[0].reverse()
            return [[{"label": label, "score": score} for label, score in row] for row in rows]

    answer = peers("text_pipelines").answering(Pipeline())
    texts = ["ccc", "a", "bb"]
    for way in peers("text_pipelines").WAYS:
        assert answer(texts, way) == [0.3, 0.1, 0.2]
    assert sizes == [(texts, 1), (texts, 8), (texts, 32), (["a", "bb", "ccc"], 32)]


def test_a_pair_is_the_halves_of_a_text(peers: Any) -> None:
    halves = peers("text_cross_encoder")._halves
    assert halves("one two three.") == ("one two", "three.")
    assert halves("one") == ("one", "")
