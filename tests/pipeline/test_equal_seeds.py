"""What a seed changes is in the keys, and the plan names seeds that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pretrained_toys import ALIKE, encoder_folder
from recipe_runs import TEACHER
from tokenizers import Tokenizer
from worlds import encoder_world

from compress.pipeline import Plan, Request, plan_all


@pytest.fixture
def embedding(tmp_path: Path) -> str:
    (tmp_path / "embedding.yaml").write_text(ALIKE.format(kind="embedding"))
    return str(tmp_path / "embedding.yaml")


def alike(plans: list[Plan]) -> list[bool]:
    """Return, for each plan, whether it says that its seed changes nothing."""
    return [any("make the same models" in note for note in plan.notes) for plan in plans]


def test_seeds_that_change_nothing_are_named(tmp_path: Path, embedding: str) -> None:
    (tmp_path / "teacher").mkdir()
    teacher = encoder_folder(tmp_path / "teacher", "bert", layers=4)
    several = plan_all(Request(("int8",), (embedding,), teacher=str(teacher), seeds=(0, 1, 2)))
    assert alike(several) == [True] * 3
    assert any("seeds 0, 1, 2 make the same models: nothing is drawn at random" in note for note in several[0].notes)
    assert alike(plan_all(Request(("int8",), (embedding,), teacher=str(teacher)))) == [False]
    mixed = plan_all(Request(("int8", "distilbert"), (embedding,), teacher=str(teacher), seeds=(0, 1)))
    assert {plan.recipe.name: said for plan, said in zip(mixed, alike(mixed), strict=True)} == {
        "int8": True, "distilbert": False,
    }  # fmt: skip


def test_seeds_of_a_training_are_repetitions(
    tmp_path: Path, tiny_checkpoint: Callable[[str], Path], toy_tokenizer: Tokenizer
) -> None:
    teacher = encoder_world(tmp_path, tiny_checkpoint("bert"), toy_tokenizer, text="a film\n")
    request = Request(("int8",), (str(tmp_path / "task.yaml"),), teacher=str(teacher), seeds=(0, 1))
    assert alike(plan_all(request)) == [False, False]


def test_the_key_of_a_sentence_encoder_that_is_drawn_has_its_seed(tmp_path: Path, embedding: str) -> None:
    (tmp_path / "tiny.yaml").write_text(TEACHER)
    request = Request(("int8",), (embedding,), teacher=str(tmp_path / "tiny.yaml"), seeds=(0, 1))
    plans = plan_all(request)
    assert len({plan.nodes[0].key for plan in plans}) == 2
    assert alike(plans) == [False, False]
