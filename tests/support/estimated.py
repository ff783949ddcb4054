"""Requests for runs whose time and memory are estimated, and the GPU that trains them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compress.pipeline import Request


def request_of(world: Path, *overrides: str, recipe: str = "int8", corpus: bool = False) -> Request:
    return Request(
        (recipe,), (str(world / "task.yaml"),), teacher=str(world / "teacher"), root=world / "runs", precision="fp32",
        threads=1, bench=None, overrides=(*overrides, "quantize.method=dynamic"),
        corpus=(str(world / "text.txt"),) if corpus else (),
    )  # fmt: skip


def gpu_of(monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    monkeypatch.setattr("compress.pipeline.estimate.training_gpu", lambda: name)
