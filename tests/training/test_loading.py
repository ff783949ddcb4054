"""Batches made ahead in a thread: the same ones in the same order, however training ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import slow
from listeners import StopError
from pretend_cuda import pretend_cuda
from training_toys import fit, same, toy_model, weights

from compress.errors import Interrupted
from compress.processes import signals
from compress.spec.stages import Training
from compress.tasks import TaskBatches
from compress.training import loop
from compress.training.loading import Loader

SETTINGS = Training(epochs=3, batch_size=8, micro_batch_size=3, learning_rate=1e-3, keep="last")


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("collate")] == []


@pytest.fixture
def collated(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[int]]]:
    """Record the thread that collated, and which examples."""
    calls: list[tuple[str, list[int]]] = []
    whole = TaskBatches.collate

    def collate(data: TaskBatches, indices: np.ndarray) -> Any:
        calls.append((threading.current_thread().name, indices.tolist()))
        return whole(data, indices)

    monkeypatch.setattr(TaskBatches, "collate", collate)
    return calls


@contextmanager
def ahead(monkeypatch: pytest.MonkeyPatch, *, wanted: bool) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(loop, "Loader", lambda data, *, ahead: Loader(data, ahead=wanted))
        yield


def trained(work: Path, settings: Training = SETTINGS, **options: Any) -> dict[str, torch.Tensor]:
    model = toy_model()
    fit(model, settings, work, **options)
    return weights(model)


def test_the_same_examples_come_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collated: list[tuple[str, list[int]]]
) -> None:
    runs = {}
    for wanted in (False, True):
        collated.clear()
        with ahead(monkeypatch, wanted=wanted):
            runs[wanted] = trained(tmp_path / str(wanted)), list(collated)
    (without, once), (with_it, again) = runs[False], runs[True]
    assert same(without, with_it)
    assert [examples for _, examples in once] == [examples for _, examples in again]
    assert {name for name, _ in once} == {"MainThread"}
    assert [name.partition("_")[0] for name, _ in again] == ["MainThread"] + ["collate"] * (len(again) - 1)


def test_the_next_batch_is_made_while_the_step_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The losses of a step are read only once the next batch's examples exist; if they were not made ahead, this would time
    out."""
    whole, checked, semaphore, steps = TaskBatches.collate, loop._Run._check_losses, threading.Semaphore(0), 5

    def collate(data: TaskBatches, indices: np.ndarray) -> Any:
        arrays = whole(data, indices)
        if threading.current_thread().name.startswith("collate"):
            semaphore.release()
        return arrays

    def waiting(run: Any, names: Any, terms: Any) -> Any:
        assert run.progress.step == steps - 1 or semaphore.acquire(timeout=30)
        return checked(run, names, terms)

    monkeypatch.setattr(TaskBatches, "collate", collate)
    monkeypatch.setattr(loop._Run, "_check_losses", waiting)
    with ahead(monkeypatch, wanted=True):
        trained(tmp_path, SETTINGS.model_copy(update={"micro_batch_size": None, "max_steps": steps, "epochs": 10.0}))


def test_a_gpu_has_its_batches_made_ahead_and_a_cpu_not(tmp_path: Path, collated: list[tuple[str, list[int]]]) -> None:
    trained(tmp_path / "cpu")
    assert {name for name, _ in collated} == {"MainThread"}
    collated.clear()
    with pretend_cuda():
        trained(tmp_path / "gpu")
    assert {name.partition("_")[0] for name, _ in collated[1:]} == {"collate"}


@pytest.mark.parametrize("stop", [2, *slow(4, 9)])  # within an epoch, at its end, in the last one
def test_a_resumed_training_goes_on_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    def stopping(report: Any) -> None:
        if report.step == stop + 1:
            raise StopError

    with ahead(monkeypatch, wanted=True):
        expected = trained(tmp_path / "whole")
        with pytest.raises(StopError):
            trained(tmp_path / "parts", checkpoint_seconds=0.0, on_step=stopping)
        assert same(trained(tmp_path / "parts"), expected)


def test_what_collating_raises_ends_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = TaskBatches.collate, []

    def failing(data: TaskBatches, indices: np.ndarray) -> Any:
        calls.append(indices)
        if len(calls) == 5:
            raise OSError("the shard is gone")
        return whole(data, indices)

    monkeypatch.setattr(TaskBatches, "collate", failing)
    with ahead(monkeypatch, wanted=True), pytest.raises(OSError, match="the shard is gone"):
        trained(tmp_path)
    assert len(calls) == 5


def test_a_signal_ends_it_with_its_state_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "requested_signal", lambda: 15)
    with ahead(monkeypatch, wanted=True), pytest.raises(Interrupted, match="stopped at step 1 of 12"):
        trained(tmp_path)
    assert (tmp_path / "state.safetensors").exists()


def test_what_was_expected_in_vain_is_dropped() -> None:
    class Data:
        seed = 0

        def __len__(self) -> int:
            return 1

        def indices(self, step: int) -> np.ndarray:
            return np.arange(4)

        def lengths(self, indices: np.ndarray) -> np.ndarray:
            return indices

        def collate(self, indices: np.ndarray) -> dict[str, np.ndarray]:
            if len(indices) == 2:
                raise OSError("never asked for")
            return {"input_ids": indices}

    with Loader(Data(), ahead=True) as loader:
        loader.prefetch(np.arange(2))
        assert loader.collate(np.arange(3))["input_ids"].tolist() == [0, 1, 2]
        loader.prefetch(np.arange(2))
        with pytest.raises(OSError, match="never"):
            loader.collate(np.arange(2))
        assert loader.collate(np.arange(1))["input_ids"].tolist() == [0]
