"""The arithmetic of benchmarks/peers: how work is cut into calls, and what its page says of a result."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PEERS = Path(__file__).parents[1] / "benchmarks/peers"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(PEERS)
    return importlib.import_module


def test_ragged_texts_are_short_and_the_same_each_time(peers: Any):
    lengths = peers("inputs").ragged_lengths()
    assert (len(lengths), max(lengths)) == (128, 64)
    assert np.mean(lengths) == pytest.approx(26, abs=0.5)
    assert lengths == peers("inputs").ragged_lengths()


def test_groups_hold_every_sequence_once_within_the_tokens(peers: Any):
    inputs = peers("inputs")
    lengths = [5, 9, 64, 20, 20, 3, 33]
    for tokens in (40, 64, 500):
        made = inputs.groups(lengths, tokens)
        assert sorted(index for group in made for index in group) == list(range(len(lengths)))
        assert all(len(group) == 1 or len(group) * lengths[group[0]] <= tokens for group in made)
    assert inputs.groups(lengths, inputs.WHOLE) == [list(range(len(lengths)))]


@pytest.mark.parametrize("cell", ["1x32", "1x128", "32x128", "ragged"])
def test_all_ways_of_a_cell_hold_the_same_tokens(peers: Any, cell: str):
    inputs = peers("inputs")
    tokens = {sum(int(batch.mask.sum()) for batch in inputs.calls(cell, way)) for way in inputs.CELLS[cell]}
    assert len(tokens) == 1


def test_padding_is_at_the_end_and_has_the_id_zero(peers: Any):
    batch = peers("inputs").padded([2, 4])
    assert batch.mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]
    assert ((batch.ids > 0) == (batch.mask > 0)).all()


def samples(*milliseconds: float) -> dict[str, Any]:
    times = [{"wall": value + 1, "cpu": value} for value in milliseconds]
    middle = sorted(milliseconds)[len(milliseconds) // 2]
    return {"way": 1, "wall": middle + 1, "cpu": middle, "samples": times}


def test_a_ratio_compares_the_times_of_the_same_round(peers: Any):
    report = peers("report")
    slow_middle, fast = samples(2, 20, 2), samples(4, 40, 1)
    assert report.ratio(slow_middle, fast, "cpu") == 0.5
    assert report.ratio(slow_middle, fast, "wall") == pytest.approx(0.6)


@pytest.fixture
def result(peers: Any) -> dict[str, Any]:
    again = peers("measuring").AGAIN
    agreement = {"largest_difference": 0.01, "correlation": 0.99, "decisions": 1.0}
    cells = {
        "1x32": {"mine": samples(2, 2), "other": samples(1, 1), again: samples(2, 2)},
        "1x128": {"mine": samples(4, 4), "second": samples(3, 3), "other": samples(6, 6), again: samples(4, 4)},
    }
    run = {"model": "m", "threads": 1, "cells": cells, "failed": {"third": "no environment: no such version"}}
    run["agreement"] = dict.fromkeys(("mine", "second", "other", again), agreement)
    ours = {"mine": True, "second": True, "other": False}
    return {
        "command": "python run.py",
        "date": "today",
        "machine": {"cpu": "a CPU", "cores": 1, "isa": ["avx2"]},
        "rounds": 2,
        "ragged": {"sequences": 1, "mean": 1.0, "longest": 1},
        "variants": {name: {"what": "a file", "ours": mine} for name, mine in ours.items()},
        "environments": {"ours": {"onnxruntime": "1"}},
        "runs": [run],
    }


def test_the_page_says_where_ours_is_slower_and_who_is_missing(peers: Any, result: dict[str, Any]):
    report = peers("report")
    page = report.render([result])
    assert "| our best | mine | second |" in page
    assert "| ours / other | **2.00 lost** | 0.50 |" in page
    assert "| second | failed | 4 (3) |" in page
    assert report._digits(2554.4) == "2,554"
    assert "* **third**: no environment: no such version" in page


def test_margins_that_go_another_way_do_not_agree(peers: Any):
    measuring = peers("measuring")
    reference = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, -1.0]])
    same = measuring._agreement(reference, (reference + 0.1).tolist())
    assert same == {"largest_difference": pytest.approx(0.1), "correlation": pytest.approx(1), "decisions": 1.0}
    assert measuring._agreement(reference, reference[:, ::-1].tolist())["correlation"] < measuring.LEAST_CORRELATION
