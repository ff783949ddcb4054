"""Output of `plan` for a teacher that is pre-trained on plain text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.end_to_end

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names

CARD = """\
name: own
title: own
licence: Apache-2.0
random: {layers: 2, hidden: 32, heads: 4, intermediate: 64, max_positions: 32, tokenizer: ./words}
"""


@pytest.fixture
def folder(tmp_path: Path, cli: Cli) -> Path:
    (tmp_path / "text.txt").write_text("\n\n".join(f"a story of {number} films ." for number in range(200)) + "\n")
    assert (
        cli("vocab", "--corpus", str(tmp_path / "text.txt"), "--size", "120", "-o", str(tmp_path / "words")).code == 0
    )
    (tmp_path / "own.yaml").write_text(CARD)
    return tmp_path


def plan(cli: Cli, folder: Path, *more: str) -> Any:
    arguments = ("--teacher", str(folder / "own.yaml"), "--task", "toy-sentiment", "--corpus", str(folder / "text.txt"))
    return cli("plan", "bert-pretrain", *arguments, "--set", "pretrain.max_length=16", *more)


def test_the_stage_and_its_settings_are_shown_from_any_folder(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    code, out, error = plan(cli, folder, "--json")
    assert code == 0, error
    (document,) = json.loads(out)
    assert [stage["stage"] for stage in document["stages"]][:3] == [
        "tokenize text",
        "pretrain pretrained",
        "finetune teacher",
    ]
    code, out, error = plan(cli, folder)
    assert code == 0, error
    assert "pretrain pretrained" in out


def test_the_start_is_shown_and_the_limit_that_may_end_a_stage(cli: Cli, folder: Path) -> None:
    said = plan(cli, folder, "--set", "pretrain.max_steps=5").out
    assert "start cooccurrence, epochs 1.0, at most 5 steps, learning_rate" in said


def test_teachers_of_one_vocabulary_share_the_tokens_of_a_text(cli: Cli, folder: Path) -> None:
    def text() -> str:
        (document,) = json.loads(plan(cli, folder, "--json").out)
        return document["stages"][0]["key"]

    own = text()
    (folder / "own.yaml").write_text(CARD.replace("layers: 2, hidden: 32", "layers: 3, hidden: 64"))
    assert text() == own
    arguments = ("vocab", "--corpus", str(folder / "text.txt"), "--size", "100", "-o", str(folder / "fewer"))
    assert cli(*arguments).code == 0
    (folder / "own.yaml").write_text(CARD.replace("./words", "./fewer"))
    assert text() != own


def test_of_several_processes_the_first_alone_shows_a_plan(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert plan(cli, folder) == (0, "", "")
    assert cli("list", "--nonsense") == (0, "", "")  # the first process reports errors


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("tokenizer: ./nowhere", "error: teacher own: random.tokenizer: ./nowhere: no such folder"),
        ("grow_from: minilm", "error: teacher own: random.grow_from: teacher `minilm` is not in the catalogue"),
        ("tokenizer: bert-mini", "error: teacher own: random.tokenizer: bert-mini has random weights"),
    ],
)
def test_a_card_that_names_nothing_is_told_with_its_field(cli: Cli, folder: Path, field: str, message: str) -> None:
    (folder / "own.yaml").write_text(CARD.replace("tokenizer: ./words", field))
    code, _, error = plan(cli, folder)
    assert code == 2
    assert error.startswith(message)
    assert len(error.splitlines()) == 1
