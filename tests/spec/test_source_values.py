"""Lists of values to choose among, fields of single tasks, and an `augment` whose `masked_lm` nothing uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from document_mistakes import HEAD, mistakes

from compress.errors import CompressError
from compress.models.cards import TeacherCard
from compress.spec.document import parse
from compress.spec.recipe import Recipe
from compress.spec.source import load, validate

SEVERAL = [  # lists of values; the tuning split chooses one
    ("[{finetune: {epochs: []}}]", "finetune.epochs: expected at least 1 in the list, found none"),
    (
        "[{finetune: {learning_rate: [2.0e-5, 2.0e-5]}}]",
        "finetune.learning_rate: expected each value once, found 2e-05 twice",
    ),
    ("[{finetune: {epochs: [2, x]}}]", "finetune.epochs[1]: expected a number, found the text 'x'"),
    (
        "[{finetune: {learning_rate: [1e-4, 1]}}]",
        "finetune.learning_rate[0]: expected a number, found the text '1e-4' (YAML needs a dot: 1.0e-4)",
    ),
    ("[{finetune: {epochs: [2, 0]}}]", "finetune.epochs[1]: expected a number above 0, found the number 0"),
    (
        f"[{{finetune: {{epochs: {[*range(1, 18)]}}}}}]",
        "finetune.epochs: expected at most 16 combinations to choose among, found 17",
    ),
    (
        "[{finetune: {epochs: [1, 2, 3, 4, 5], learning_rate: [1, 2, 3, 4]}}]",
        "finetune.learning_rate: expected at most 16 combinations to choose among, found 20",
    ),
    (
        "[{finetune: {epochs: [1, 2, 3, 4, 5], per_task: {rte: {learning_rate: [1, 2, 3, 4]}}}}]",
        "finetune.per_task.rte.learning_rate: expected at most 16 combinations to choose among, found 20",
    ),
    (
        "[{finetune: {per_task: {rte: {epochs: [3, 3]}}}}]",
        "finetune.per_task.rte.epochs: expected each value once, found 3 twice",
    ),
    (
        "[{finetune: {per_task: {rte: {epochs: [3, a]}}}}]",
        "finetune.per_task.rte.epochs[1]: expected a number, found the text 'a'",
    ),
    ("[{finetune: {warmup: [0.1, 0.2]}}]", "finetune.warmup: expected a number, found a list"),
    ("[{distill: {epochs: [1, 2]}}]", "distill.epochs: expected a number, found a list; a list is for `finetune`"),
    (
        "[{general: {learning_rate: [1, 2]}}]",
        "general.learning_rate: expected a number, found a list; a list is for `finetune`",
    ),
    (
        "[{distill: {per_task: {rte: {learning_rate: [1, 2]}}}}]",
        "distill.per_task.rte.learning_rate: expected a number, found a list; a list is for `finetune`",
    ),
]


@pytest.mark.parametrize(("stages", "expected"), SEVERAL)
def test_mistakes_in_values_to_choose_among(stages, expected):
    assert mistakes(f"{HEAD}stages: {stages}\n") == [f"mine.yaml:3: stages[0].{expected}"]


AUGMENT = """\
name: mine
title: Mine
student: a
stages:
  - finetune
  - augment:
      masked_lm: bert-base
%s
  - distill:
  - export:
"""
IDLE = "has no effect if `source` is `embedding`; leave one of the two out"


@pytest.mark.parametrize(
    ("rest", "line", "path"),
    [
        (["source: embedding"], 7, "masked_lm"),
        (["source: embedding", "per_task: {cola: {copies: 3}}"], 7, "masked_lm"),
        (["per_task:", "  cola: {source: embedding,", "    masked_lm: other}"], 10, "per_task.cola.masked_lm"),
    ],
)
def test_a_masked_lm_that_nothing_uses(rest: list[str], line: int, path: str):
    text = AUGMENT % "\n".join(f"      {word}" for word in rest)
    assert mistakes(text) == [f"mine.yaml:{line}: stages[1].augment.{path}: {IDLE}"]


@pytest.mark.parametrize(
    "rest",
    ["per_task: {cola: {source: embedding}}", "source: embedding\n      per_task: {cola: {source: masked_lm}}"],
)
def test_a_masked_lm_for_some_tasks(rest: str):
    recipe = validate(parse(AUGMENT % f"      {rest}", "mine.yaml"), Recipe)
    assert recipe.stages[1].spec.masked_lm == "bert-base"


def test_a_masked_lm_that_the_command_line_makes_idle(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text(AUGMENT % "")
    with pytest.raises(CompressError) as caught:
        load(tmp_path / "mine.yaml", Recipe, overrides=["augment.source=embedding"])
    assert str(caught.value) == f"{tmp_path / 'mine.yaml'}:7: stages[1].augment.masked_lm: {IDLE}"


def test_a_stage_of_per_task_fields_inside_per_task_is_refused():
    problems = mistakes(f"{HEAD}stages: [{{finetune: {{per_task: {{rte: {{per_task: {{}}}}}}}}}}, export]")
    assert len(problems) == 1
    assert problems[0].startswith("mine.yaml:3: stages[0].finetune.per_task.rte.per_task: unknown key")


@pytest.mark.parametrize("key", ["zzz", "name", "per_task"])
def test_the_known_keys_for_a_task_are_those_it_may_have(key: str):
    (line,) = mistakes(f"{HEAD}stages: [{{finetune: {{per_task: {{rte: {{{key}: {{}}}}}}}}}}, export]\n")
    known = line.partition("known: ")[2].split(", ")
    assert "unknown key" in line
    assert "epochs" in known
    assert not {"name", "per_task"} & {*known}


def test_a_teacher_card_lists_no_values_for_students():
    head = "name: ab\ntitle: x\nlicence: y\ncheckpoint: {path: x}\nfinetune: {epochs: [2, 3]}\n"
    assert validate(parse(head, "mine.yaml"), TeacherCard).finetune.epochs == (2.0, 3.0)
    expected = "mine.yaml:6: distill: epochs is a list, which is for `finetune`; give it one value"
    assert mistakes(head + "distill: {epochs: [2, 3]}\n", TeacherCard) == [expected]


@pytest.mark.parametrize("stages", ["5", "true", "[[{distill: {}}]]", "{distill: {}}"])
def test_a_setting_at_the_top_is_refused_beside_stages_that_cannot_be_read(stages):
    problems = mistakes(f"{HEAD}epochs: 3\nstages: {stages}\n")
    assert problems[0].startswith("mine.yaml:3: epochs: unknown key; known: ") and len(problems) == 2


def test_a_stage_whose_name_is_no_text_goes_by_its_kind():
    text = f"{HEAD}epochs: 3\nstages: [finetune, {{distill: {{name: [1]}}}}]\n"
    assert mistakes(text)[0].endswith("a setting of stages: `finetune.epochs` or `distill.epochs`")
