"""Latencies are not shared between machines with different vector extensions, as in a virtual machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from listeners import StopError

from compress.pipeline import BenchSettings
from compress.pipeline.results.measure import Model, benchmark
from compress.search.latency import Latencies


def test_a_search_measures_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter((1.0, 2.0))

    def measured() -> float:
        return Latencies(tmp_path).get({"layers": 2}, lambda: next(times))

    assert measured() == 1.0
    with monkeypatch.context() as other:
        other.setattr("compress.search.latency.isa", lambda: ("sse4_2",))
        assert measured() == 2.0
    assert measured() == 1.0


def test_a_run_measures_anew(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[str] = []

    def build(key: str, *rest: Any, **named: Any) -> None:
        keys.append(key)
        raise StopError

    checkpoint: Any = SimpleNamespace(path=tiny_checkpoint("bert"))
    model = Model("teacher", "fp32", tmp_path / "model.onnx", "0" * 32, checkpoint)
    listener = SimpleNamespace(stage=lambda label, cached: None)
    context: Any = SimpleNamespace(task=SimpleNamespace(fingerprint="1"), listener=listener)
    cache: Any = SimpleNamespace(find=lambda key: None, build=build)

    def measure() -> None:
        with pytest.raises(StopError):
            benchmark([model], context, BenchSettings(), cache)

    measure()
    measure()
    monkeypatch.setattr("compress.pipeline.results.measure.isa", lambda: ("sse4_2",))
    measure()
    assert keys[0] == keys[1] != keys[2]
