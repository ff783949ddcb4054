"""Several processes train as one does: the same batches, gradients and losses, the same end after a fault."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

from compress import signals
from compress.errors import Interrupted
from compress.training.sharing import share

HERE = Path(__file__)
CHILD = str(HERE.with_name("parallel_child.py"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parents[2]), "HF_HUB_OFFLINE": "1"}
TEACHER = """
name: own
title: own
licence: Apache-2.0
random: {{layers: 2, hidden: 16, heads: 2, intermediate: 32, max_positions: 32, tokenizer: "{0}"}}
"""
RECIPE = """
name: recipe
title: Toy
teacher: own.yaml
stages:
  - pretrain: {batch_size: 8, max_steps: 4, max_length: 16, held_out: 0.1}
  - finetune: {batch_size: 8, max_steps: 4, dropout: 0.0}
  - export
"""
# Every stage that trains but `masked_lm`, whose loop is that of `pretrain`.
ALL = """
name: all
title: Toy
teacher: own.yaml
student: small.yaml
stages:
  - pretrain: {batch_size: 8, max_steps: 4, max_length: 16, held_out: 0.1}
  - finetune: {batch_size: 8, max_steps: 4, dropout: 0.0}
  - general:
      losses: [{name: masked_soft_target}, {name: masked_lm}, {name: hidden_cosine}]
      batch_size: 8
      max_steps: 4
      max_length: 16
      dropout: 0.0
  - distill: {losses: [{name: soft_target}], batch_size: 8, epochs: 1, dropout: 0.0}
  - quantize_aware: {losses: [{name: soft_target}], batch_size: 8, max_steps: 4, dropout: 0.0}
  - export
  - quantize: {method: qat}
"""
SMALL = "{name: small, title: S, architecture: bert, layers: 1, hidden: 16, heads: 2, intermediate: 32, init: random}"
TASK = """
name: toy
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 16
synthetic: {generator: sentiment, train: 40, dev: 8}
"""
RUN = ["run", "recipe.yaml", "--task", "task.yaml", "--corpus", "text.txt", "--no-bench", "--threads", "2"]


def torchrun(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Two processes by torch's own launcher."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", port]
    return subprocess.run(
        [*command, *arguments], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120
    )


class Processes:
    """Groups of processes, forked from one that has torch."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline().strip()

    def run(self, scenario: str, folder: Path, count: int = 2, **options: Any) -> list[int]:
        """Exit codes by rank."""
        folder.mkdir(exist_ok=True)
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([scenario, str(folder), count, options]) + "\n")
        self._server.stdin.flush()
        return json.loads(self._line())

    def close(self) -> None:
        self._server.communicate()


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    found = Processes()
    yield found
    found.close()


def said(folder: Path) -> list[str]:
    """What all processes printed, line by line."""
    return [line for path in sorted(folder.glob("said-*")) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def toys(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The toy trained by one process and by two of torchrun."""
    one, two = (tmp_path_factory.mktemp(name) for name in ("one", "two"))
    assert processes.run("losses", one, 1) == [0], said(one)
    done = torchrun(CHILD, "losses", str(two), cwd=two)
    assert done.returncode == 0, done.stderr
    return one, two


@pytest.fixture(scope="module")
def split_toy(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy trained by two processes with its weights split between them."""
    folder = tmp_path_factory.mktemp("split")
    assert processes.run("losses", folder, split=True) == [0, 0], said(folder)
    return folder


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("settings", ["whole", "micro", "empty"])
def test_two_processes_learn_what_one_learns(toys: tuple[Path, Path], split_toy: Path, settings: str, split: bool):
    """Batches that do not divide evenly, a share that is empty, terms per token and per example, a projection that is
    learnt beside the model, a buffer that follows the batch."""
    toys = (toys[0], split_toy if split else toys[1])
    one, two = (json.loads((toy / settings / "losses.json").read_text()) for toy in toys)
    assert len(one) == len(two) > 3
    for mine, theirs in zip(one, two, strict=True):
        assert mine.keys() == theirs.keys() == {"soft_target", "hard_label", "hidden_cosine", "read"}
        assert list(theirs.values()) == pytest.approx(list(mine.values()), rel=2e-4)  # fp32 sums in another order
    (mine, theirs) = (load_file(toy / settings / "learnt.safetensors") for toy in toys)
    for name, tensor in mine.items():
        if settings == "whole" or name != "1.seen":  # follows forwards: of other micro-batches, other means
            # AdamW divides a gradient near 0 by its own size: what rounds moves a weight by up to a few rates.
            torch.testing.assert_close(theirs[name], tensor, rtol=1e-3, atol=2e-3, msg=name)


def test_every_example_of_an_epoch_is_seen_once_by_one_process(toys: tuple[Path, Path]):
    seen = [json.loads((toys[1] / "micro" / f"ids-{rank}.json").read_text()) for rank in (0, 1)]
    counts = [Counter(np.concatenate(ids).tolist()) for ids in seen]
    assert counts[0] + counts[1] == Counter(range(28))
    assert [counter.total() for counter in counts] == [14, 14]
    assert max(len(part) for ids in seen for part in ids) == 3  # of shares of 4


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
            reached = signals.requested()
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert reached == signal.SIGINT


@pytest.fixture(scope="module")
def whole(processes: Processes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """What two processes learn with dropout and without a fault."""
    folder = tmp_path_factory.mktemp("whole")
    assert processes.run("faults", folder) == [0, 0], said(folder)
    state = load_file(folder / "work" / "state.safetensors")
    assert not torch.equal(state["rng.cpu"], state["process.1.rng.cpu"])
    return load_file(folder / "learnt.safetensors")


def ends_like(whole: dict[str, torch.Tensor], folder: Path) -> bool:
    found = load_file(folder / "learnt.safetensors")
    return all(torch.equal(found[name], tensor) for name, tensor in whole.items())


@pytest.mark.parametrize("step", [2, 5])
def test_a_kill_of_both_and_a_restart_end_in_the_same_weights(
    processes: Processes, whole: dict[str, torch.Tensor], tmp_path: Path, step: int
):
    assert processes.run("faults", tmp_path, step=step, number=signal.SIGKILL, who=(1, 0)) == [-9, -9]
    assert not (tmp_path / "learnt.safetensors").exists()
    assert processes.run("faults", tmp_path) == [0, 0], said(tmp_path)
    assert ends_like(whole, tmp_path)


def test_a_split_run_that_is_killed_goes_on_whole(processes: Processes, whole: dict[str, torch.Tensor], tmp_path: Path):
    """Its state is that of a run that is not split: with the same draws of dropout it ends in the same weights but for
    sums in another order."""
    harm: dict[str, Any] = {"step": 5, "number": signal.SIGKILL, "who": (1, 0)}
    assert processes.run("faults", tmp_path, split=True, **harm) == [-9, -9]
    assert processes.run("faults", tmp_path) == [0, 0], said(tmp_path)
    found = load_file(tmp_path / "learnt.safetensors")
    for name, tensor in whole.items():  # AdamW: see above
        torch.testing.assert_close(found[name], tensor, rtol=1e-3, atol=2e-3, msg=name)


def test_a_split_run_ends_bit_for_bit_the_same_after_a_kill(processes: Processes, tmp_path: Path):
    for name in ("once", "killed"):
        (tmp_path / name).mkdir()
    assert processes.run("faults", tmp_path / "once", split=True) == [0, 0], said(tmp_path / "once")
    killed: dict[str, Any] = {"step": 2, "number": signal.SIGKILL, "who": (1, 0)}
    assert processes.run("faults", tmp_path / "killed", split=True, **killed) == [-9, -9]
    assert processes.run("faults", tmp_path / "killed", split=True) == [0, 0], said(tmp_path / "killed")
    assert ends_like(load_file(tmp_path / "once" / "learnt.safetensors"), tmp_path / "killed")


@pytest.mark.parametrize(
    ("family", "headed"),
    [("bert", True), ("distilbert", True), ("albert", True), ("untied", True), ("partial", True), ("bert", False)],
)
def test_a_split_model_has_the_features_and_gradients_of_a_whole_one(
    processes: Processes, tmp_path: Path, family: str, headed: bool
):
    """Embeddings alone, what is read inside of layers, a block that is run several times, the table of words; and each
    process holds about half of it. What is compared is in the scenario."""
    assert processes.run("features", tmp_path, family=family, headed=headed) == [0, 0], said(tmp_path)


def test_three_processes_split_what_two_cannot_halve(processes: Processes, tmp_path: Path):
    """The classifier has two classes: one of the three has no part of its bias."""
    assert processes.run("features", tmp_path, 3, family="bert", headed=True) == [0, 0, 0], said(tmp_path)


def test_a_split_run_in_bf16_learns_what_a_whole_one_does(processes: Processes, tmp_path: Path):
    found = {}
    for split in (False, True):
        folder = tmp_path / str(split)
        folder.mkdir()
        assert processes.run("losses", folder, split=split, precision="bf16") == [0, 0], said(folder)
        found[split] = json.loads((folder / "whole" / "losses.json").read_text())
    for mine, theirs in zip(*found.values(), strict=True):
        assert theirs == pytest.approx(mine, rel=0.02)  # bf16 has three digits


def test_a_split_run_without_memory_says_what_to_lower(processes: Processes, tmp_path: Path):
    assert processes.run("no_memory", tmp_path) == [1, 2], said(tmp_path)  # the other one has lost it
    assert any("ProcessLost" in line for line in (tmp_path / "said-0").read_text().splitlines())
    assert [line for line in said(tmp_path) if "out of memory with 4 examples a forward" in line]


def test_fsdp_alone_is_refused(processes: Processes, world: Path):
    assert processes.run("command", world, 1, arguments=[*RUN, "--fsdp"]) == [2]
    assert errors(world) == [
        "error: --fsdp splits a model among processes, and this is one alone; start two or more by torchrun"
    ]
    assert not (world / "runs").exists()


def test_a_signal_to_one_stops_both_at_the_same_step(
    processes: Processes, whole: dict[str, torch.Tensor], tmp_path: Path
):
    assert processes.run("faults", tmp_path, step=3, number=signal.SIGTERM, who=(1,)) == [143, 143]
    stopped = [line for line in said(tmp_path) if "Interrupted: stopped at step" in line]
    assert len(stopped) == 2
    assert len(set(stopped)) == 1
    assert processes.run("faults", tmp_path) == [0, 0], said(tmp_path)
    assert ends_like(whole, tmp_path)


def test_a_process_that_is_killed_does_not_leave_the_other_waiting(processes: Processes, tmp_path: Path):
    assert processes.run("faults", tmp_path, step=3, number=signal.SIGKILL, who=(1,)) == [1, -9]
    assert "or one has ended, see its own message" in said(tmp_path)[-1]


@pytest.fixture
def world(tmp_path: Path, toy_tokenizer: Tokenizer) -> Path:
    """A folder with a teacher from plain text, its text, a recipe and a task."""
    (tmp_path / "words").mkdir()
    toy_tokenizer.save(str(tmp_path / "words" / "tokenizer.json"))
    sentences = ("the film is good .", "the story is not bad .", "a very long old film .")
    documents = [" ".join(sentences[(i + j) % 3] for j in range(4)) for i in range(60)]
    texts = {
        "own.yaml": TEACHER.format(tmp_path / "words"),
        "recipe.yaml": RECIPE,
        "all.yaml": ALL,
        "small.yaml": SMALL,
    }
    texts["task.yaml"] = TASK
    for name, text in (texts | {"text.txt": "\n\n".join(documents) + "\n"}).items():
        (tmp_path / name).write_text(text)
    return tmp_path


def errors(folder: Path) -> list[str]:
    return [line for line in said(folder) if line.startswith("error:")]


def test_a_loss_that_is_not_finite_in_one_process_ends_all_with_one_line(processes: Processes, world: Path):
    assert processes.run("command", world, arguments=RUN, nan=1) == [1, 1]
    assert errors(world) == [
        "error: step 2: loss masked_lm is nan; stopped before the weights were touched. "
        "Lower learning_rate, or train with --precision fp32"
    ]
    assert not any("Traceback" in line for line in said(world))


def test_what_fails_in_the_first_process_alone_ends_all_with_one_line(processes: Processes, world: Path):
    assert processes.run("command", world, arguments=RUN, fail=True) == [2, 2]
    assert errors(world) == ["error: the export cannot be done"]
    assert processes.run("command", world, arguments=["run", "recipe.yaml", "--task", "tsak.yaml"]) == [2, 2]
    assert len(errors(world)) == 2


def test_an_interrupt_while_the_others_wait_is_told_once(processes: Processes, world: Path):
    assert processes.run("command", world, arguments=RUN, interrupt=True) == [130, 130]
    assert errors(world) == ["error: interrupted; finished steps are kept, run the same command to continue"]


def logged(folder: Path, kind: str) -> list[dict[str, float]]:
    """The losses of a stage, step by step."""
    for path in (folder / "runs" / ".store").glob("*/manifest.json"):
        if json.loads(path.read_text())["describe"]["kind"] == kind:
            return [json.loads(line)["losses"] for line in path.with_name("log.jsonl").read_text().splitlines()]
    raise AssertionError(f"no {kind} in the store")


def test_the_command_runs_under_torchrun_as_it_does_alone(processes: Processes, world: Path):
    command = ["run", "all.yaml", *RUN[2:]]
    done = torchrun("-m", "compress", *command, cwd=world)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("report: ") == done.stdout.count("run:    ") == 1
    assert done.stderr.count("pretrain pretrained") == 1
    (world / "runs").rename(world / "two")
    (world / "two" / "runs").mkdir()
    (world / "two" / ".store").rename(world / "two" / "runs" / ".store")
    assert processes.run("command", world, 1, arguments=command) == [0], said(world)
    # Hidden tokens are counted in each share; ranges follow the means of other forwards.
    shutil.copytree(world, world / "split", ignore=shutil.ignore_patterns("runs", "two", "said-*"))
    assert processes.run("command", world / "split", arguments=[*command, "--fsdp"]) == [0, 0], said(world / "split")
    told = "student-qat: every process holds the whole model, --fsdp or not: its roundings stand inside the model"
    assert any(told in line for line in said(world / "split"))
    tolerances = {"pretrain": 0.05, "finetune": 0.02, "general": 0.05, "distill": 0.05, "quantize_aware": 0.1}
    for kind, tolerance in tolerances.items():
        one, two, split = (logged(folder, kind) for folder in (world, world / "two", world / "split"))
        assert len(one) == len(two) == len(split) == (5 if kind == "distill" else 4)
        for mine, theirs in zip([*one, *one], [*two, *split], strict=True):
            assert theirs == pytest.approx(mine, rel=tolerance, abs=1e-6)
