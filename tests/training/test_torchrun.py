"""The commands under torchrun: the same result as with one process, and one line for an error in any of them."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest
from parallel_processes import Processes, said, torchrun
from tokenizers import Tokenizer

from compress.errors import CompressError, Interrupted
from compress.pipeline import distributed
from compress.processes import signals
from compress.results import Result

pytestmark = pytest.mark.end_to_end

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
# Every stage that trains, except `masked_lm`, which uses `pretrain`'s loop.
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


@pytest.fixture
def world(tmp_path: Path, toy_tokenizer: Tokenizer) -> Path:
    """Return a folder with a teacher made from plain text, the text, recipes and a task."""
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


@pytest.mark.slow
def test_fsdp_alone_is_refused(processes: Processes, world: Path):
    assert processes.run("command", world, 1, arguments=[*RUN, "--fsdp"]) == [2]
    assert errors(world) == [
        "error: --fsdp splits a model among processes, and there is only one; start two or more with torchrun"
    ]
    assert not (world / "runs").exists()


def test_a_loss_that_is_not_finite_in_one_process_ends_all_with_one_line(processes: Processes, world: Path):
    assert processes.run("command", world, arguments=[*RUN, "--precision", "fp32"], nan=1) == [1, 1]
    assert errors(world) == [
        "error: recipe recipe, stage pretrain: step 2: loss masked_lm is nan; stopped before the weights were touched. Lower learning_rate"
    ]
    assert not any("Traceback" in line for line in said(world))


@pytest.mark.slow
def test_what_fails_in_the_first_process_alone_ends_all_with_one_line(processes: Processes, world: Path):
    assert processes.run("command", world, arguments=RUN, fail=True) == [2, 2]
    assert errors(world) == ["error: the export cannot be done"]
    assert processes.run("command", world, arguments=["run", "recipe.yaml", "--task", "tsak.yaml"]) == [2, 2]
    assert len(errors(world)) == 2


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted by Linux's /proc")
def test_no_thread_of_a_connection_outlives_it(processes: Processes, world: Path):
    """A thread that frees a tensor during the interpreter's shutdown aborts the process."""
    assert processes.run("leave", world) == [0, 0]
    counts = [line.split() for line in said(world)]
    assert len(counts) == 2
    assert all(int(joined) > 0 and left == "0" for _, joined, _, left in counts)


@pytest.mark.slow
def test_an_interrupt_while_the_others_wait_is_told_once(processes: Processes, world: Path):
    assert processes.run("command", world, arguments=RUN, interrupt=True) == [130, 130]
    assert errors(world) == ["error: interrupted; run the same command to continue: it does not repeat finished steps"]


def test_an_interrupt_while_the_last_word_is_told_is_not_lost(monkeypatch: pytest.MonkeyPatch):
    messages: list[dict[str, object]] = []

    def broadcast(word: dict[str, object]) -> None:
        messages.append(word)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(distributed.ranks, "broadcast", broadcast)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    signals.install()
    try:
        with pytest.raises(Interrupted):
            distributed.lead(lambda _: [])
        with pytest.raises(CompressError, match=r"^mine$"):
            distributed.lead(failing)
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(number, handler)
    assert messages == [{"results": []}, {"failed": "mine", "exit_code": 2}]


def failing(_: distributed.Peers) -> list[Result]:
    raise CompressError("mine")


def logged(folder: Path, kind: str) -> list[dict[str, float]]:
    """Return the losses of a stage at each step."""
    for path in (folder / "runs" / ".store").glob("*/manifest.json"):
        if json.loads(path.read_text())["describe"]["kind"] == kind:
            return [json.loads(line)["losses"] for line in path.with_name("log.jsonl").read_text().splitlines()]
    raise AssertionError(f"no {kind} in the store")


@pytest.mark.slow
def test_the_command_runs_under_torchrun_as_it_does_alone(processes: Processes, world: Path):
    command = ["run", "all.yaml", *RUN[2:]]
    done = torchrun("-m", "compress", *command, cwd=world)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("report: ") == done.stdout.count("run:    ") == 1
    assert done.stderr.count("pretrain pretrained") == 1
    (world / "runs").rename(world / "two")
    (world / "two" / "runs").mkdir()
    (world / "two" / ".store").rename(world / "two" / "runs" / ".store")
    assert processes.run("command", world, 1, arguments=command) == [0], "\n".join(said(world))
    # Masked tokens are counted in each share; quantization ranges follow the means of other forward passes.
    shutil.copytree(world, world / "split", ignore=shutil.ignore_patterns("runs", "two", "said-*"))
    assert processes.run("command", world / "split", arguments=[*command, "--fsdp"]) == [0, 0], "\n".join(
        said(world / "split")
    )
    notice = "student-qat: every process holds the whole model despite --fsdp: its rounding is part of the forward"
    assert any(notice in line for line in said(world / "split"))
    tolerances = {"pretrain": 0.05, "finetune": 0.02, "general": 0.05, "distill": 0.05, "quantize_aware": 0.1}
    for kind, tolerance in tolerances.items():
        one, two, split = (logged(folder, kind) for folder in (world, world / "two", world / "split"))
        assert len(one) == len(two) == len(split) == (5 if kind == "distill" else 4)
        for mine, theirs in zip([*one, *one], [*two, *split], strict=True):
            assert theirs == pytest.approx(mine, rel=tolerance, abs=1e-6)
