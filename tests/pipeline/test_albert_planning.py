"""Untied stages: what a plan of them holds, and every order and loss that cannot be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.errors import CompressError
from compress.pipeline import Plan, Request, plan_all

PULL = "[{name: embedding_mse}, {name: block_spread}]"


class Case:
    def __init__(self, folder: Path, checkpoint: Path, tokenizer: Tokenizer) -> None:
        self.folder = folder
        self.teacher = encoder_world(folder, checkpoint, tokenizer, text="the film is good .\n" * 50)

    def plan(self, *overrides: str, corpus: bool = False, **student: Any) -> Plan:
        """Of the recipe `albert`, whose distill stages are embeddings, intermediate and prediction."""
        card = {"name": "s", "title": "S", "architecture": "albert", "layers": 2, "init": "convert"}
        card |= {"albert": {"embedding": 8}, **student}
        (self.folder / "s.yaml").write_text(json.dumps(card))
        request = Request(
            ("albert",),
            (str(self.folder / "task.yaml"),),
            teacher=str(self.teacher),
            student=str(self.folder / "s.yaml"),
            corpus=(str(self.folder / "text.txt"),) if corpus else (),
            overrides=overrides,
        )
        return plan_all(request)[0]


@pytest.fixture
def case(tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer) -> Case:
    return Case(tmp_path, tiny_checkpoint("bert"), toy_tokenizer)


def keys(plan: Plan) -> dict[str, str]:
    return {node.id: node.key for node in plan.nodes}


def test_untied_stages_come_first_and_are_stages_of_their_own(case: Case):
    usual, apart = keys(case.plan()), keys(case.plan("embeddings.untied=true", f"embeddings.losses={PULL}"))
    changed = [name for name in usual if usual[name] != apart[name]]
    assert changed == ["embeddings", "intermediate", "prediction", "student-fp32", "student-int8"]
    both = case.plan("embeddings.untied=true", "intermediate.untied=true")
    assert [getattr(node.spec, "untied", None) for node in both.nodes if node.kind == "distill"] == [True, True, False]


def test_an_untied_stage_of_other_groups_or_of_none(case: Case):
    two: dict[str, Any] = {"layers": 4, "init": "random", "albert": {"embedding": 8, "groups": 2}}
    untied = ("intermediate.enabled=false", "embeddings.untied=true")  # the teacher has two layers to match
    said = case.plan(*untied, f"embeddings.losses={PULL[:-2]}, groups: 2}}]", **two)
    left_open = case.plan(*untied, f"embeddings.losses={PULL}", **two)
    assert keys(said) == keys(left_open)
    (node,) = [node for node in left_open.nodes if node.id == "embeddings"]
    assert [loss.groups for loss in node.spec.losses if loss.name == "block_spread"] == [2]
    assert case.plan(*untied, f"embeddings.losses={PULL[:-2]}, weight: 0, groups: 1}}]", **two)


BERT = {"architecture": "bert", "init": "copy", "albert": None}
REFUSED = [
    ((f"embeddings.losses={PULL}",), {}, "stage embeddings: block_spread compares the blocks of an untied stage;"),
    (
        ("embeddings.untied=true",),
        BERT,
        "stage embeddings: untied: student s is no ALBERT with `share: all`; leave `untied` out",
    ),
    (("embeddings.untied=true",), {"albert": {"embedding": 8, "share": "none"}}, "s is no ALBERT with `share: all`"),
    (
        ("embeddings.untied=true",),
        {"architecture": "partial-albert", "albert": {"embedding": 8, "share": "ffn"}},
        "s is no ALBERT with `share: all`",
    ),
    (
        ("embeddings.untied=true", f"embeddings.losses={PULL[:-2]}, groups: 2}}]"),
        {},
        "stage embeddings: block_spread: groups is 2, and student s has 1; leave `groups` out",
    ),
    (
        ("embeddings.untied=true",),
        {"albert": {"embedding": 8, "groups": 2}},
        "stage embeddings: untied: student s has a block for each layer as it is; leave `untied` out",
    ),
    (
        ("intermediate.untied=true",),
        {},
        "stage intermediate: untied: a stage before it shares the blocks already; put untied stages first",
    ),
    (
        ("embeddings.untied=true", "intermediate.untied=true", "prediction.untied=true"),
        {},
        "stage prediction: untied: the last distill stage must share the blocks; add one after it",
    ),
    (
        ("embeddings.untied=true", "intermediate.enabled=false", "prediction.enabled=false"),
        {},
        "stage embeddings: untied: the last distill stage must share the blocks",
    ),
]


@pytest.mark.parametrize(("overrides", "student", "message"), REFUSED)
def test_what_cannot_be_is_refused(case: Case, overrides: tuple[str, ...], student: dict[str, Any], message: str):
    with pytest.raises(CompressError, match=re.escape(message)):
        case.plan(*overrides, **student)


def test_the_encoder_of_plain_text_shares_its_blocks(case: Case):
    """So that no untied stage can start from it, and no spread can be there: told before hours of text."""
    with pytest.raises(
        CompressError, match=r"untied: a stage before it shares the blocks already; .*without a general"
    ):
        case.plan("embeddings.untied=true", corpus=True)
    assert case.plan("embeddings.untied=true", "general.enabled=false", corpus=True)
    with pytest.raises(CompressError, match="stage general: block_spread compares blocks that only a distill stage"):
        case.plan(f"general.losses={PULL}", corpus=True)
