"""Tiny question answering checkpoints, and their graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from family_teachers import reader_of
from plain_teachers import plain_reader
from reader_graphs import TASK

from compress.export import export_onnx
from compress.export.forms import FORMS


@pytest.fixture(scope="session")
def reader_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function: family -> folder of a tiny question answering checkpoint."""
    folders: dict[str, Path] = {}

    def make(family: str) -> Path:
        if family not in folders:
            folders[family] = tmp_path_factory.mktemp(f"reader-{family}")
            model = plain_reader(family) if family in FORMS else reader_of(family)
            model.save_pretrained(folders[family])
        return folders[family]

    return make


@pytest.fixture(scope="session")
def reader_graph(
    reader_checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Return a function: (family, form, opset) -> model.onnx."""
    paths: dict[tuple[str, str, int], Path] = {}

    def make(family: str, form: str = "fast", opset: int = 20) -> Path:
        place = family, form, opset
        if place not in paths:
            folder = tmp_path_factory.mktemp("graph")
            export_onnx(reader_checkpoint(family), folder, graph=form, **{**TASK, "opset": opset})
            paths[place] = folder / "model.onnx"
        return paths[place]

    return make
