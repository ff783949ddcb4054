"""benchmarks/peers/text_*.py: the texts, the choice of a way, a short text, the page, and one run of ours."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from runtime_toys import bag

from compress.errors import CompressError
from compress.runtime import Classifier


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    names = [one + two for one in "abcdefghij" for two in "klmnop"]
    path.write_text(
        json.dumps({"model": {"vocab": {name: index for index, name in enumerate([*names, "##s", "q", "7up"])}}})
    )
    return path


def test_ragged_texts_are_the_same_each_time(peers: Any, words: Path) -> None:
    texts = peers("ragged_texts").ragged_texts(words, 50)
    assert texts == peers("ragged_texts").ragged_texts(words, 50)
    assert len({*texts}) == 50


def test_ragged_texts_have_words_of_the_vocabulary_in_the_numbers_said(peers: Any, words: Path) -> None:
    ragged = peers("ragged_texts")
    split = [text.removesuffix(".").split() for text in ragged.ragged_texts(words, 3000)]
    sizes = np.array([*map(len, split)])
    assert (sizes.min(), sizes.max() <= ragged.MOST) == (ragged.FEWEST, True)
    assert np.median(sizes) == pytest.approx(ragged.MEDIAN, abs=1)
    assert np.log(sizes).std() == pytest.approx(ragged.SPREAD, abs=0.05)
    every = [word for text in split for word in text]
    assert {len(word) for word in every} == {2, 4}  # one word, or two joined; neither "##s", "q" nor "7up"
    assert np.mean([len(word) == 4 for word in every]) == pytest.approx(0.15, abs=0.01)


def test_the_fastest_way_is_one_that_no_caller_has_to_write(peers: Any) -> None:
    fastest = peers("text_measuring").fastest
    ways = {
        "1": {"cpu": 3.0, "wall": 2.0},
        "8": {"cpu": 2.0, "wall": 3.0},
        "32 sorted": {"cpu": 1.0, "wall": 1.0},
    }
    assert fastest(ways, 1) == "8"  # by CPU time
    assert fastest(ways, 2) == "1"  # by wall-clock time
    every = {**peers("text_pipelines").WAYS, **peers("text_cross_encoder").WAYS, **peers("text_ours").WAYS}
    assert [way for way in every if peers("text_measuring").BY_CALLER in way] == ["32 sorted"]


def test_the_median_is_of_the_rounds_that_had_answers(peers: Any) -> None:
    rounds = [
        {"p50": 0.002, "p99": 0.004, "wall": 2.0, "answered": 10, "failed": 0, "raised": []},
        {"p50": 0.004, "p99": 0.008, "wall": 1.0, "answered": 5, "failed": 5, "raised": ["OSError: full"]},
        {"p50": None, "p99": None, "wall": 0.5, "answered": 0, "failed": 10, "raised": ["ValueError: no"]},
    ]
    summary = peers("text_measuring")._summary(rounds)
    assert summary["p50"] == pytest.approx(3)  # milliseconds
    assert summary["p99"] == pytest.approx(6)
    assert summary["per_second"] == 5  # the median of 5, 5 and 0
    assert (summary["failed"], summary["raised"]) == (15, "OSError: full")
    assert "p50" not in peers("text_measuring")._summary(rounds[2:])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Make a folder like text_to_answer.py's: a bundle of two labels in both precisions, and texts."""
    folder = tmp_path / "text"
    bag(folder / "bundle", (0.0, 0.0))
    shutil.copy(folder / "bundle/onnx/model.onnx", folder / "bundle/onnx/model_quantized.onnx")
    texts = [" ".join(["a", "short", "text"] * (index % 5 + 1)) for index in range(30)]
    (folder / "texts.json").write_text(json.dumps(texts))
    return folder


def test_the_parts_of_a_short_text_make_up_the_whole(peers: Any, model: Path) -> None:
    parts = peers("text_parts")
    times = peers("text_ours").part_times("Classifier int8", model, "a short text", 5)
    whole = times.pop(parts.WHOLE)
    assert whole == pytest.approx(sum(times.values()))
    assert parts.MODEL in times
    assert all(time > 0 for name, time in times.items() if name != parts.REST)


def test_parts_that_come_to_another_answer_are_refused(
    peers: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier = Classifier(model / "bundle", threads=1)
    monkeypatch.setattr(classifier, "predict", lambda text: [])
    with pytest.raises(RuntimeError, match="another answer"):
        peers("text_parts").part_times(classifier, "a short text", 1)


def test_a_short_text_is_the_first_that_has_the_words(peers: Any, model: Path) -> None:
    cut: list[str] = []
    peer = SimpleNamespace(WAYS={}, part_times=lambda variant, model, text, repeats: cut.append(text))
    peers("text_child").TextServer(peer).part_times("", "", str(model / "texts.json"), 7, 1)
    assert cut == ["a short text a short text a"]


@pytest.fixture
def result(peers: Any, model: Path) -> dict[str, Any]:
    """Return the result of a run of ours in real processes, with a candidate whose file is missing."""
    measuring, ours = peers("text_measuring"), peers("text_ours")
    missing = model / "bundle/onnx/model.onnx"
    missing.unlink()
    candidates = [measuring.Candidate(name, measuring.OURS, Path(sys.executable)) for name in ours.VARIANTS]
    run = measuring.measure(candidates, model, 1, texts=30, rounds=2, requests=6, say=lambda *words: None)
    short = {"words": 3, "repeats": 2}
    short["microseconds"] = measuring.short_text(candidates[0], model, **short)
    return {
        "command": "python text_to_answer.py",
        "date": "2026-01-02",
        "machine": {"cpu": "a CPU", "cores": 2, "isa": ["avx2"]},
        "texts": {"count": 30, "mean": 9.0, "median": 9, "p99": 15.0, "longest": 15},
        "rounds": 2,
        "requests": 6,
        "variants": ours.VARIANTS,
        "ways": {"text_ours": ours.WAYS},
        "versions": {"text_ours": {"onnxruntime": "1"}},
        "short": short,
        "runs": [run],
    }


def test_ours_runs_from_text_to_answer(peers: Any, result: dict[str, Any], tmp_path: Path) -> None:
    first, again = peers("text_measuring").FIRST, peers("text_measuring").AGAIN
    (run,) = result["runs"]
    assert run["taken"] == {first: "predict", again: "predict"}
    assert {*run["whole"]} == {first, again}
    assert [run["callers"][count][first]["failed"] for count in (1, 4, 16)] == [0, 0, 0]
    assert "model.onnx" in run["failed"]["Classifier fp32"]
    filed, other = peers("filed"), {"cpu": "other", "cores": 2, "isa": []}
    for one in ({**result, "runs": [{**run, "threads": 2}]}, result, {**result, "machine": other}):
        filed.file_result(one, tmp_path / "filed")
    page = peers("text_report").render(filed.filed(tmp_path / "filed"))
    assert [*map(page.count, ("\n## a-avx2", "\n## other", "\n### 1 thread\n", "\n### 2 threads\n"))] == [2, 1, 2, 1]
    assert "### 30 texts in one call" in page
    assert "| Classifier int8 | predict |" in page
    assert "|  | 1 caller | 4 callers | 16 callers |" in page
    assert "One text of 3 words, answered 2 times" in page
    assert "| tokenizing |" in page
    assert "* **Classifier fp32**: " in page
    assert "* text_ours: onnxruntime 1. Ways: `predict`: no setting" in page


def test_a_short_text_that_fails_ends_the_run(peers: Any, model: Path) -> None:
    """It fails before anything slow is measured."""
    measuring = peers("text_measuring")
    shutil.rmtree(model / "bundle/onnx")
    with pytest.raises(CompressError, match="onnx"):
        measuring.short_text(measuring.Candidate(measuring.FIRST, measuring.OURS, Path(sys.executable)), model, 3, 2)


def whole(seconds: float) -> dict[str, float]:
    return {"cpu": seconds, "wall": 2 * seconds, "before_mb": 100.0, "after_mb": 101.4}


def test_the_page_has_ratios_by_the_clock_of_its_threads(peers: Any) -> None:
    report = peers("text_report")
    first = peers("text_measuring").FIRST
    run = {
        "texts": 1000,
        "whole": {first: whole(2.0), "other": {**whole(8.0), "wall": 6.0}},
        "taken": {first: "predict", "other": "8"},
    }
    run["correlation"] = {"other": 0.98765}
    assert f"| {first} | predict | 500 | 250 |  | 100, 101 |  |" in report._whole(run, "cpu")
    assert "| other | 8 | 125 | 167 | 4.00x | 100, 101 | 0.988 |" in report._whole(run, "cpu")
    assert "| 1.50x |" in report._whole(run, "wall")


def test_the_page_says_beside_whom_the_goal_is_reached(peers: Any) -> None:
    report, measuring = peers("text_report"), peers("text_measuring")
    times = {measuring.FIRST: 2.0, "Classifier fp32": 9.0, "even": 8.0, "near": 7.8, measuring.AGAIN: 2.1}
    run = {"whole": {name: whole(time) for name, time in times.items()}}
    assert report._goal(run, "cpu").endswith("than these: even (4.00x). **Not** that much: near (3.90x).\n")
    assert report._goal({"whole": {"even": whole(1)}}, "cpu") == ""  # ours failed


def test_the_page_says_how_many_requests_failed(peers: Any) -> None:
    latency = peers("text_report")._latency
    times = {"p50": 1.2345, "p99": 20.04, "per_second": 123.4, "failed": 0, "raised": None}
    assert latency(times) == "1.23 / 20 (123)"
    assert (
        latency({**times, "failed": 3, "raised": "OSError: full"})
        == "1.23 / 20 (123), 3 requests failed: OSError: full"
    )
    assert latency(None) == latency({"failed": 6, "per_second": 0.0}) == "failed"
