"""Several processes train like one: the same batches, gradients and losses, and the same result after a fault."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from default_suite import slow
from parallel_processes import Processes, said
from safetensors.torch import load_file

from compress.errors import Interrupted
from compress.processes import signals
from compress.training.data_parallel import share

pytestmark = pytest.mark.end_to_end


@pytest.fixture(scope="module")
def toys(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Train the toy with one process and with two."""
    one, two = (tmp_path_factory.mktemp(name) for name in ("one", "two"))
    assert processes.run("losses", one, 1) == [0], "\n".join(said(one))
    assert processes.run("losses", two) == [0, 0], "\n".join(said(two))
    return one, two


@pytest.fixture(scope="module")
def split_toy(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train the toy with two processes that shard its weights."""
    folder = tmp_path_factory.mktemp("split")
    assert processes.run("losses", folder, split=True) == [0, 0], "\n".join(said(folder))
    return folder


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("settings", ["whole", "micro", "empty"])
def test_two_processes_learn_what_one_learns(toys: tuple[Path, Path], split_toy: Path, settings: str, split: bool):
    """With uneven batches, an empty share, losses per token and per example, a projection trained beside the model, and a buffer
    that follows the batch."""
    toys = (toys[0], split_toy if split else toys[1])
    one, two = (json.loads((toy / settings / "losses.json").read_text()) for toy in toys)
    assert len(one) == len(two) > 3
    for mine, theirs in zip(one, two, strict=True):
        assert mine.keys() == theirs.keys() == {"soft_target", "hard_label", "hidden_cosine", "read"}
        assert list(theirs.values()) == pytest.approx(list(mine.values()), rel=2e-4)  # fp32 sums in another order
    (mine, theirs) = (load_file(toy / settings / "learnt.safetensors") for toy in toys)
    for name, tensor in mine.items():
        if settings == "whole" or name != "1.seen":  # follows forward passes, whose means differ with the micro-batches
            # AdamW divides a gradient near 0 by its own size, so rounding moves a weight by up to a few learning rates.
            torch.testing.assert_close(theirs[name], tensor, rtol=1e-3, atol=2e-3, msg=name)


def test_every_example_of_an_epoch_is_seen_once_by_one_process(toys: tuple[Path, Path]):
    seen = [json.loads((toys[1] / "micro" / f"ids-{rank}.json").read_text()) for rank in (0, 1)]
    counts = [Counter(np.concatenate(ids).tolist()) for ids in seen]
    assert counts[0] + counts[1] == Counter(range(28))
    assert [counter.total() for counter in counts] == [14, 14]
    assert max(len(part) for ids in seen for part in ids) == 3  # their shares have 4 examples


def test_shares_are_disjoint_complete_and_even(monkeypatch: pytest.MonkeyPatch):
    for size in range(1, 9):
        shares = []
        for rank in range(3):
            for name, value in (("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", 3)):
                monkeypatch.setenv(name, str(value))
            shares.append(share(np.arange(size)))
        assert sorted(np.concatenate(shares).tolist()) == list(range(size))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_signal_that_torchrun_passes_on_as_well_is_taken_for_one(monkeypatch: pytest.MonkeyPatch):
    before, reached = signal.getsignal(signal.SIGINT), None
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.setenv(name, "2")
    try:
        signals.install()
        with pytest.raises(Interrupted), signals.deferred():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            reached = signals.requested_signal()
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert reached == signal.SIGINT


@pytest.fixture(scope="module")
def whole(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """Return the weights of two processes that train with dropout and without a fault."""
    folder = tmp_path_factory.mktemp("whole")
    assert processes.run("faults", folder) == [0, 0], "\n".join(said(folder))
    state = load_file(folder / "work" / "state.safetensors")
    assert not torch.equal(state["rng.cpu"], state["process.1.rng.cpu"])
    return load_file(folder / "learnt.safetensors")


def ends_like(whole: dict[str, torch.Tensor], folder: Path) -> bool:
    state = load_file(folder / "learnt.safetensors")
    return all(torch.equal(state[name], tensor) for name, tensor in whole.items())


@pytest.mark.parametrize("step", [2, *slow(5)])
def test_a_kill_of_both_and_a_restart_end_in_the_same_weights(
    processes: Processes, whole: dict[str, torch.Tensor], tmp_path: Path, step: int
):
    assert processes.run("faults", tmp_path, step=step, number=signal.SIGKILL, who=(1, 0)) == [-9, -9]
    assert not (tmp_path / "learnt.safetensors").exists()
    assert processes.run("faults", tmp_path) == [0, 0], "\n".join(said(tmp_path))
    assert ends_like(whole, tmp_path)


def test_a_split_run_that_is_killed_goes_on_whole(processes: Processes, whole: dict[str, torch.Tensor], tmp_path: Path):
    """Its state equals that of an unsharded run: with the same dropout the weights end the same up to the order of sums."""
    harm: dict[str, Any] = {"step": 5, "number": signal.SIGKILL, "who": (1, 0)}
    assert processes.run("faults", tmp_path, split=True, **harm) == [-9, -9]
    assert processes.run("faults", tmp_path) == [0, 0], "\n".join(said(tmp_path))
    state = load_file(tmp_path / "learnt.safetensors")
    for name, tensor in whole.items():  # for AdamW, see above
        torch.testing.assert_close(state[name], tensor, rtol=1e-3, atol=2e-3, msg=name)


@pytest.mark.slow
def test_a_split_run_ends_bit_for_bit_the_same_after_a_kill(processes: Processes, tmp_path: Path):
    for name in ("once", "killed"):
        (tmp_path / name).mkdir()
    assert processes.run("faults", tmp_path / "once", split=True) == [0, 0], "\n".join(said(tmp_path / "once"))
    killed: dict[str, Any] = {"step": 2, "number": signal.SIGKILL, "who": (1, 0)}
    assert processes.run("faults", tmp_path / "killed", split=True, **killed) == [-9, -9]
    assert processes.run("faults", tmp_path / "killed", split=True) == [0, 0], "\n".join(said(tmp_path / "killed"))
    assert ends_like(load_file(tmp_path / "once" / "learnt.safetensors"), tmp_path / "killed")


@pytest.mark.parametrize(
    ("family", "headed"),
    [
        ("bert", True),
        *slow(("distilbert", True), ("albert", True), ("albert of three blocks", True), ("bert", False)),
    ],
)
def test_a_split_model_has_the_features_and_gradients_of_a_whole_one(
    processes: Processes, tmp_path: Path, family: str, headed: bool
):
    """Embeddings, features inside layers, a block that runs several times, and the word table; each process holds about half. The
    scenario compares them."""
    assert processes.run("features", tmp_path, family=family, headed=headed) == [0, 0], "\n".join(said(tmp_path))


@pytest.mark.slow
def test_three_processes_split_what_two_cannot_halve(processes: Processes, tmp_path: Path):
    """The classifier has two classes, so one of three processes has no part of its bias."""
    assert processes.run("features", tmp_path, 3, family="bert", headed=True) == [0, 0, 0], "\n".join(said(tmp_path))


@pytest.mark.slow
def test_a_split_run_in_bf16_learns_what_a_whole_one_does(processes: Processes, tmp_path: Path):
    losses = {}
    for split in (False, True):
        folder = tmp_path / str(split)
        folder.mkdir()
        assert processes.run("losses", folder, split=split, precision="bf16") == [0, 0], "\n".join(said(folder))
        losses[split] = json.loads((folder / "whole" / "losses.json").read_text())
    for mine, theirs in zip(*losses.values(), strict=True):
        assert theirs == pytest.approx(mine, rel=0.02)  # bf16 has three digits


def test_a_split_run_without_memory_says_what_to_lower(processes: Processes, tmp_path: Path):
    assert processes.run("no_memory", tmp_path) == [1, 2], said(tmp_path)  # the other process has lost it
    assert any("ProcessLost" in line for line in (tmp_path / "said-0").read_text().splitlines())
    assert [line for line in said(tmp_path) if "out of memory with 4 examples per forward" in line]


def test_a_signal_to_one_stops_both_at_the_same_step(
    processes: Processes, whole: dict[str, torch.Tensor], tmp_path: Path
):
    assert processes.run("faults", tmp_path, step=3, number=signal.SIGTERM, who=(1,)) == [143, 143]
    stopped = [line for line in said(tmp_path) if "Interrupted: stopped at step" in line]
    assert len(stopped) == 2
    assert len(set(stopped)) == 1
    assert processes.run("faults", tmp_path) == [0, 0], "\n".join(said(tmp_path))
    assert ends_like(whole, tmp_path)


def test_a_process_that_is_killed_does_not_leave_the_other_waiting(processes: Processes, tmp_path: Path):
    assert processes.run("faults", tmp_path, step=3, number=signal.SIGKILL, who=(1,)) == [1, -9]
    assert "or one has ended, see its own message" in said(tmp_path)[-1]
