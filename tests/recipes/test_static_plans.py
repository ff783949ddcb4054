"""Plans of recipe static: what the key of its table depends on, and what a static student cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from family_teachers import teacher_of
from static_toys import plan, static_world

from compress.errors import CompressError


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return static_world(tmp_path_factory.mktemp("static"))


def test_the_table_s_key_is_of_what_it_depends_on(world: Path) -> None:
    before = plan(world).keys
    later = plan(world, "distill.learning_rate=0.1", "distill.max_length=12").keys
    assert later["token_vectors"] == before["token_vectors"] and later["student"] != before["student"]
    assert plan(world, seeds=(1,), base_seed=0).keys["token_vectors"] == before["token_vectors"]
    for more in ("hidden: 16", "static: {rarity: 0.1}", "static: {states: mean}"):
        (world / "own.yaml").write_text(f"name: own\ntitle: Own\narchitecture: static\ninit: static\n{more}\n")
        own = plan(world, student=str(world / "own.yaml")).keys
        assert own["token_vectors"] != before["token_vectors"] and own["teacher"] == before["teacher"]
    assert plan(world, "finetune.epochs=2").keys["token_vectors"] != before["token_vectors"]


GENERAL = """
name: {name}
title: With a stage that reads layers
teacher: minilm-l6
student: static-256
stages:
  - finetune:
{stages}
  - distill: {{losses: [{{name: soft_target}}]}}
  - export:
  - quantize:
"""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "questions"}, "student static-256 has no layer that combines question and context"),
        ({"task": "vectors", "overrides": ["quantize.method=auto"]}, "with no matmuls for method `auto` to choose among"),
        ({"task": "vectors", "overrides": ["quantize.embeddings=false"]}, "`embeddings: false` keeps it in fp32"),
        ({"overrides": ["distill.losses=[{name: hidden_mse}]"]}, "hidden_mse: a static student has no layers"),
        ({"overrides": ["distill.losses=[{name: embedding_mse}]"]}, "embedding_mse: a static student has no layers"),
        ({"recipe": "distilbert", "student": "static-256"}, "hidden_cosine: a static student has no layers"),
        ({"recipe": "minilm", "student": "static-256"}, "relation_kl: a static student has no layers"),
        ({"recipe": "tinybert", "student": "static-256"}, "a static student has no layers, and so no states to compare"),
        ({"recipe": "distilbert-int8-qat", "student": "static-256", "overrides": ["distill.losses=[{name: soft_target}]"]},
         "trains layers for int8, and a static has none"),
    ],
)  # fmt: skip
def test_what_a_static_student_cannot_do_is_refused_by_name(world: Path, changes: dict[str, Any], message: str) -> None:
    reads_text = changes.get("recipe") == "tinybert"
    options = {"corpus": (str(world / "text.txt"),)} if reads_text else {}
    options |= {name: changes[name] for name in ("student",) if name in changes}
    with pytest.raises(CompressError, match=message):
        plan(
            world,
            *changes.get("overrides", ()),
            recipe=changes.get("recipe", "static"),
            task=changes.get("task", "texts"),
            **options,
        )


def test_without_layers_nothing_is_learnt_of_plain_text(world: Path) -> None:
    (world / "general.yaml").write_text(
        GENERAL.format(name="general", stages="  - general: {losses: [{name: hidden_mse}]}")
    )
    teacher_of("bert", world / "bert")
    with pytest.raises(CompressError, match=r"stage general.*hidden_mse: a static student has no layers"):
        plan(
            world,
            recipe=str(world / "general.yaml"),
            teacher=str(world / "bert"),
            corpus=(str(world / "text.txt"),),
        )
