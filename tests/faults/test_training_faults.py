"""Training through the store under real faults: kills, signals, two processes; the final weights are bit-identical."""

from __future__ import annotations

import errno
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from default_suite import slow
from fault_runs import Forks, artefact, kill_often, lines, outcome, trainer_of
from tokenizers import Tokenizer

from compress.pipeline.training.log import saved_step
from compress.store import Store

pytestmark = pytest.mark.end_to_end

RECIPE = """
name: recipe
title: Toy
student: {folder}/student.yaml
stages:
  - finetune: {{batch_size: 8, epochs: 2, learning_rate: 1.0e-3, evaluate_every: 0.5, max_length: 24}}
  - distill:
      batch_size: 8
      epochs: 2
      learning_rate: 1.0e-3
      evaluate_every: 0.5
      max_length: 24
      losses: [{{name: soft_target, weight: 2.0}}, {{name: hard_label}}]
  - export
"""
STUDENT = "{name: student, title: S, architecture: distilbert, layers: 1}"
TASK = """
name: toy
text: [sentence]
label: label
labels: [negative, positive]
metrics: [accuracy]
max_length: 24
tuning_fraction: 0.25
synthetic: {generator: sentiment, train: 64, dev: 8}
"""
STEPS = 12  # of the teacher, and of the student: two epochs of six batches


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory, toy_tokenizer: Tokenizer) -> Path:
    """A folder with a teacher with random weights and dropout, a student, a recipe and a task."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("recipe")
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig.from_dict({**size, "vocab_size": 64, "max_position_embeddings": 24})
    torch.manual_seed(0)
    BertModel(config).save_pretrained(folder / "teacher")
    toy_tokenizer.save(str(folder / "teacher" / "tokenizer.json"))
    for name, text in (("recipe", RECIPE.format(folder=folder)), ("student", STUDENT), ("task", TASK)):
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.fixture(scope="module")
def trainer(recipe: Path) -> Iterator[Forks]:
    forks = trainer_of(recipe)
    yield forks
    forks.close()


@pytest.fixture(scope="module")
def whole(trainer: Forks, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[str]]:
    """The artefacts of a run without a fault, and their keys."""
    root = tmp_path_factory.mktemp("whole") / "root"
    assert trainer.run(root) == 0, lines(root, "errors")
    artefacts = outcome(root)
    assert [len(each["log"]) for each in artefacts.values()] == [STEPS, STEPS]
    assert set(artefacts["student"]["files"]) >= {"config.json", "model.safetensors", "tokenizer.json"}
    keys = [path.name for path in (root / ".store").iterdir() if not path.name.startswith(".")]
    assert len(keys) == 2
    return artefacts, keys


def test_the_same_run_again_is_bit_identical_and_dropout_is_on(
    trainer: Forks, whole: Any, recipe: Path, tmp_path: Path
):
    config = json.loads((recipe / "teacher" / "config.json").read_text())
    assert config["hidden_dropout_prob"] == config["attention_probs_dropout_prob"] == 0.1
    assert trainer.run(tmp_path / "root") == 0
    assert outcome(tmp_path / "root") == whole[0]


@pytest.mark.slow
def test_twenty_kills_at_any_moment(trainer: Forks, whole: Any, tmp_path: Path):
    roots, stages = kill_often(trainer, tmp_path, whole[1], kills=20, seed=1)
    assert stages == {0, 1, 2}
    taken = sum(len(lines(root, "steps")) for root in roots)
    assert taken > 2 * STEPS * len(roots)  # some were lost with the process and repeated
    for root in roots:
        assert outcome(root) == whole[0]


@pytest.mark.slow
def test_kills_while_the_artefact_is_put_together(trainer: Forks, whole: Any, tmp_path: Path):
    """After the last step the checkpoint is saved, hashed and named: killed every few disk accesses there."""
    root, halves = tmp_path / "root", set[int]()
    store = Store(root / ".store")
    assert trainer.run(root, step=STEPS, signal=signal.SIGTERM) == 143
    for touch in range(15, 200, 4):
        assert trainer.run(root, touch=touch) == -signal.SIGKILL, lines(root, "errors")
        halves |= {len(list(out.iterdir())) for out in root.glob(".store/.building/*/out")}
        there = [key for key in whole[1] if store.path(key).exists()]
        assert all(store.find(key) for key in there), store.last_problem
        if there:
            break
    assert len(halves) > 2  # some with only part of the files
    assert trainer.run(root) == 0, lines(root, "errors")
    assert outcome(root) == whole[0]


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        ({"write": 25, "code": errno.EIO}, "the disk failed (Input/output error); "),
        *slow(
            ({"write": 90, "code": errno.EDQUOT}, "cannot write more (Disk quota exceeded); "),
            ({"limit": 9000}, "cannot write more (File too large); "),
        ),
    ],
    ids=["broken", "quota", "limit"],
)
def test_a_disk_that_refuses_is_one_line_and_the_same_command_continues(
    trainer: Forks, whole: Any, tmp_path: Path, harm: dict[str, int], reason: str
):
    root = tmp_path / "root"
    assert trainer.run(root, **harm) == 2
    (line,) = lines(root, "errors")
    assert reason in line
    assert trainer.run(root) == 0, lines(root, "errors")
    assert outcome(root) == whole[0]


@pytest.mark.parametrize(
    ("step", "number"),
    [(8, signal.SIGINT), *slow((STEPS + 5, signal.SIGTERM), (1, signal.SIGTERM), (STEPS, signal.SIGINT))],
    ids=["mid-epoch", "student", "first", "last"],
)
def test_a_signal_saves_and_the_same_command_continues(
    trainer: Forks, whole: Any, tmp_path: Path, step: int, number: signal.Signals
):
    root = tmp_path / "root"
    assert trainer.run(root, step=step, signal=number) == 128 + number
    taken = (step - 1) % STEPS + 1
    assert lines(root, "errors") == [f"stopped at step {taken} of {STEPS}; the same command continues there"]
    assert len(list((root / ".store").glob("*/manifest.json"))) == (step > STEPS)
    assert [saved_step(work) for work in (root / ".store" / ".building").glob("*/work")] == [taken]
    assert trainer.run(root) == 0
    once = list(range(1, STEPS + 1))
    assert list(map(int, lines(root, "steps"))) == once + once
    assert outcome(root) == whole[0]


def test_two_processes_share_one_result(trainer: Forks, whole: Any, tmp_path: Path):
    """The first trains, held until the second starts; the second waits for the first's result."""
    root = tmp_path / "root"
    notices = root.with_name("root.notices")
    first = trainer.start(root, hold=str(notices))
    while len(lines(root, "steps")) < 3:
        time.sleep(0.01)
    second = trainer.start(root, hold=str(notices))
    assert [trainer.wait(first), trainer.wait(second)] == [0, 0], lines(root, "errors")
    assert notices.read_text().splitlines()[0] == "waiting for another process that is building finetune teacher on toy"
    once = list(range(1, STEPS + 1))
    assert list(map(int, lines(root, "steps"))) == once + once  # each step was taken by one of them
    one, other = (json.loads(path.read_text()) for path in tmp_path.glob("root.done-*"))
    assert one == other
    assert {name: artefact(Path(each["path"]), each["info"]) for name, each in one.items()} == whole[0]
