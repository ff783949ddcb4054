"""A run leaves the settings that threads share as they were, and runs in several threads do not mix."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from logging import INFO
from pathlib import Path
from typing import Any

import pytest
import torch
from recipe_runs import TASK, TEACHER
from transformers.utils import logging

import compress
from compress.processes.shared_settings import exclusive, restore_at_end


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    for name, text in (("tiny.yaml", TEACHER), ("task.yaml", TASK)):
        (tmp_path / name).write_text(text)
    return {"tasks": tmp_path / "task.yaml", "teacher": tmp_path / "tiny.yaml", "bench": None}


def weights(root: Path) -> dict[str, str]:
    """Stage key -> hash of the weights it wrote."""
    files = root.glob(".store/*/model.safetensors")
    return {file.parent.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_torch_and_transformers_are_as_before(settings: dict[str, Any], tmp_path: Path) -> None:
    threads, level, bars = torch.get_num_threads(), logging.get_verbosity(), logging.is_progress_bar_enabled()
    try:
        torch.set_num_threads(3)
        logging.set_verbosity_info()
        logging.enable_progress_bar()
        state = torch.get_rng_state()
        compress.run("int8", root=tmp_path / "runs", threads=1, **settings)
        assert torch.get_num_threads() == 3
        assert torch.equal(torch.get_rng_state(), state)
        assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (INFO, True)
    finally:
        torch.set_num_threads(threads)
        logging.set_verbosity(level)
        if not bars:
            logging.disable_progress_bar()


def test_runs_in_two_threads_train_as_alone(settings: dict[str, Any], tmp_path: Path) -> None:
    def run(seed: int, root: Path) -> None:
        compress.run("distilbert", root=root, seeds=(seed,), threads=1, **settings)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, (0, 1), [tmp_path / "together"] * 2))
    for seed in (0, 1):
        run(seed, tmp_path / "alone")
    assert weights(tmp_path / "together") == weights(tmp_path / "alone") != {}


def test_other_threads_wait_and_the_outermost_end_restores() -> None:
    log: list[str] = []
    inside = threading.Event()

    def other() -> None:
        inside.wait()
        with exclusive():
            log.append("other")

    thread = threading.Thread(target=other)
    thread.start()
    with exclusive():
        restore_at_end("a", lambda: lambda: log.append("restored"))
        with exclusive():
            restore_at_end("a", lambda: lambda: log.append("restored twice"))
        inside.set()
        thread.join(0.1)
        assert log == []
    thread.join()
    assert log == ["restored", "other"]
    restore_at_end("a", lambda: lambda: log.append("outside"))  # nothing to restore to
    assert log == ["restored", "other"]
