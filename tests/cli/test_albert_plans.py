"""Output of `plan` for an ALBERT student, and for invalid cards and recipes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from default_suite import slow

pytestmark = pytest.mark.end_to_end

Cli = Callable[..., Any]  # arguments -> (exit code, stdout, stderr), with those names

TEACHER = """\
name: tiny
title: tiny
licence: Apache-2.0
random: {layers: 4, hidden: 32, heads: 4, intermediate: 64, vocabulary: 300, max_positions: 32}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TEACHER)
    return tmp_path


def plan(cli: Cli, folder: Path, card: dict[str, Any], *more: str) -> Any:
    fields = {"name": "s", "title": "S", "architecture": "albert", "layers": 4, "init": "convert", **card}
    (folder / "s.yaml").write_text(json.dumps(fields))  # JSON is YAML
    return cli("plan", "albert", "--task", "toy-sentiment", "--teacher", "tiny.yaml", "--student", "s.yaml", *more)


def albert(**fields: Any) -> dict[str, Any]:
    return {"embedding": 8, **fields}


@pytest.mark.parametrize(
    ("card", "start"),
    [
        ({"albert": albert()}, "converted: E 8, one block for 4 layers, fit"),
        *slow(({"albert": albert(groups=2, block="mean")}, "converted: E 8, 2 blocks for 4 layers, mean")),
        (
            {"albert": albert(groups=2, block=[0, 3])},
            "converted: E 8, 2 blocks for 4 layers, from teacher layers [0, 3]",
        ),
        *slow(
            ({"albert": albert(share="none")}, "converted: E 8, a block for each of 4 layers, fit"),
            ({"albert": albert(groups=4)}, "converted: E 8, a block for each of 4 layers, fit"),
        ),
        ({"init": "random", "albert": albert()}, "from random weights"),
        ({"architecture": "bert", "init": "copy", "layers": 2}, "copying teacher layers [0, 3], counted from 0"),
    ],
)
def test_how_the_student_starts_is_said(cli: Cli, folder: Path, card: dict[str, Any], start: str) -> None:
    code, out, error = plan(cli, folder, card, "--json")
    assert code == 0, error
    (document,) = json.loads(out)
    assert document["start"] == start
    shown = " ".join(plan(cli, folder, card)[1].split())
    assert f"tiny -> s, {start}, " in shown


def test_what_sharing_does_not_shrink_is_said(cli: Cli, folder: Path) -> None:
    sentence = "it does not shrink FLOPs per token (100%): smaller on disk, not faster."
    (document,) = json.loads(plan(cli, folder, {"albert": albert()}, "--json")[1])
    assert document["tradeoff"].startswith("the student shrinks parameters to ")
    assert document["tradeoff"].endswith(sentence)
    assert sentence in " ".join(plan(cli, folder, {"albert": albert()})[1].split())
    (document,) = json.loads(plan(cli, folder, {"albert": albert(), "layers": 2}, "--json")[1])
    assert document["tradeoff"] is None
    (document,) = json.loads(cli("plan", "int8", "--task", "toy-sentiment", "--teacher", "tiny.yaml", "--json").out)
    assert (document["tradeoff"], document["start"]) == (None, None)


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ({"albert": albert(share="attention")}, "albert.share"),
        ({"albert": albert(groups=3)}, "albert.groups: 3 blocks cannot be repeated equally often in 4 layers"),
        ({"albert": albert(groups=8)}, "albert.groups: 8 blocks cannot be repeated equally often in 4 layers"),
        ({"albert": albert(groups=2, share="none")}, "albert.groups: only with `share: all`; found 2 with `none`"),
        ({"albert": {"embedding": 33}}, "albert.embedding is 33 and the teacher's hidden size 32"),
        ({"albert": albert(block=[0, 1])}, "albert.block: expected one layer for each of the 1 blocks; found [0, 1]"),
        ({"albert": albert(share="none", block=[0])}, "expected one layer for each of the 4 blocks; found [0]"),
        ({"albert": albert(block=[4])}, "albert.block names layer 4 and the teacher's last is 3"),
        ({"albert": albert(block=[-1])}, "albert.block"),
        ({"albert": albert(block=[])}, "albert.block"),
        (
            {"init": "copy", "albert": albert()},
            "init: expected one of `convert`, `random` for a student `albert`; found `copy`",
        ),
        ({"init": "project", "albert": albert()}, "for a student `albert`; found `project`"),
        ({"architecture": "bert"}, "for a student `bert`; found `convert`"),
        (
            {"architecture": "bert", "init": "copy", "albert": albert()},
            "an ALBERT architecture belong together; found `bert`",
        ),
        ({}, "`albert` and an ALBERT architecture belong together; found `albert`"),
        ({"layers": 5, "albert": albert()}, "student s has 5 layers and the teacher 4: a block cannot replace less"),
        ({"hidden": 16, "albert": albert()}, "hidden is 16 and the teacher's is 32; a converted student keeps"),
        ({"heads": 2, "albert": albert()}, "heads is 2 and the teacher's is 4; a converted student keeps"),
        ({"intermediate": 48, "albert": albert()}, "intermediate is 48 and the teacher's is 64"),
    ],
)
def test_a_card_that_cannot_be_is_told_at_once(cli: Cli, folder: Path, card: dict[str, Any], message: str) -> None:
    code, out, error = plan(cli, folder, card)
    assert code == 2
    assert message in error
    assert not out
    assert error.startswith("error: ")
    assert "Traceback" not in error
    assert not (folder / "runs").exists()


def test_a_random_albert_may_have_any_sizes(cli: Cli, folder: Path) -> None:
    card = {"init": "random", "layers": 6, "hidden": 48, "heads": 6, "albert": {"embedding": 64}}
    assert (
        plan(cli, folder, card, "--set", "embeddings.losses=[{name: soft_target}]").code == 2
    )  # its heads do not match
    losses = "[{name: soft_target}]"
    stages = ("embeddings", "intermediate", "prediction")
    sets = [word for stage in stages for word in ("--set", f"{stage}.losses={losses}")]
    code, _, error = plan(cli, folder, card, *sets, "--set", "general.enabled=false")
    assert code == 0, error
